"""Generates docs/rights.md from the table of the chart's rules."""

from __future__ import annotations

from typing import assert_never

from herdkeeper.schema.access import ACCESS, EXECUTOR_RULES, AccessRule, Scope

_INTRODUCTION = """# What the operator may do

The chart grants the operator's ServiceAccount these rights, and no others. [security.md](security.md#rights) says what an attacker could do
with them.

`make generate` makes this page from `operator/src/herdkeeper/schema/access.py`, which is also the source of the chart's rules. Tests
compare the table with the operator's requests to an API server (`operator/tests/integration/test_rights_are_used.py`): an unused right
fails them.

| Where | API group | Resources | Verbs | Why |
|---|---|---|---|---|
"""


def page() -> str:
    """Returns the page."""
    return _INTRODUCTION + "".join(map(_row, ACCESS))


def _row(rule: AccessRule) -> str:
    handed_on = " (held to be handed on)" if rule in EXECUTOR_RULES else ""
    columns = (_where(rule.scope), rule.group or "core", ", ".join(rule.resources), ", ".join(rule.verbs), f"{rule.why}{handed_on}")
    return f"| {' | '.join(columns)} |\n"


def _where(scope: Scope) -> str:
    match scope:
        case Scope.WATCHED:
            return "watched namespaces, or everywhere"
        case Scope.CLUSTER:
            return "cluster"
        case Scope.HOME:
            return "own namespace"
        case _:
            assert_never(scope)
