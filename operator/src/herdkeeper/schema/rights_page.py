"""Generates docs/rights.md from the table of the chart's rules."""

from __future__ import annotations

from herdkeeper.schema.access import ACCESS, CHARTS_DRIVER_ROLE, DRIVER_RULES, AccessRule, Scope

_INTRODUCTION = """# What the operator may do

The chart grants the operator's ServiceAccount these rights, and no others. [security.md](security.md#rights) says what an attacker could do
with them.

`make generate` makes this page from `operator/src/herdkeeper/schema/access.py`, which is also the source of the chart's rules.

Is each right needed? The API servers of the tests keep an audit log of the operator's requests (`e2e/kind/audit-policy.yaml`). One test
compares the table with that log after all stories (`operator/tests/integration/test_rights_are_used.py`): a right that is missing or unused
fails it. For a right that its stories don't take, it names the test that does.

`make rights-used` does the same with the logs of whole runs, integration tests and scenarios together. It fails for an unused right, and
lists what was refused. Some rights no log shows, because the API server asks for them inside of another request: `bind`, the marks on
`executors`, and `update` of `finalizers`. For these it names the test that fails without the right.

"""

_HEAD = """| Where | API group | Resources | Verbs | Why |
|---|---|---|---|---|
"""

_OF_DRIVERS = """
## What the driver of a Spark job may do

The chart has a ClusterRole for the drivers of jobs with executors, named after the release. The operator binds it to a run's driver, in the
run's namespace, by a RoleBinding. It may bind no other role, and doesn't hold these rights itself. A test has a real Spark driver make,
replace and delete its executors, and fails for a right that is missing or unused (`operator/tests/integration/test_drivers_rights.py`).

"""
_WHERE = {
    Scope.WATCHED: "watched namespaces, or everywhere",
    Scope.CLUSTER: "cluster",
    Scope.CHOSEN: "cluster, with `watchNamespaces`",
    Scope.HOME: "own namespace",
    Scope.DRIVER: "the run's namespace",
}


def page() -> str:
    return "".join((_INTRODUCTION, _HEAD, *map(_row, ACCESS), _OF_DRIVERS, _HEAD, *map(_row, DRIVER_RULES)))


def _row(rule: AccessRule) -> str:
    only = "the one for drivers" if rule.only == CHARTS_DRIVER_ROLE else f"`{rule.only}`"
    resources = f"{', '.join(rule.resources)}{'' if rule.only is None else f' (only {only})'}"
    columns = (_WHERE[rule.scope], rule.group or "core", resources, ", ".join(rule.verbs), rule.why)
    return f"| {' | '.join(columns)} |\n"
