"""Which of its rights the operator has used, by audit logs of API servers: `python -m herdkeeper_e2e.rights_used [LOG…]`.

Without a LOG it takes those that the last runs have kept. Prints each right that the chart gives the operator and that no request has used,
and each request that no rule allowed. The exit code is 1 if a right is unused and UNSEEN does not explain it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from herdkeeper.api.resource import GROUP
from herdkeeper.schema.access import PLURALS
from herdkeeper_e2e.audit_log import CACHE, Request, distinct, kept_in, requests_of
from herdkeeper_e2e.control_plane import OPERATOR_USER, rendered, role_key

RBAC = "rbac.authorization.k8s.io"
CREATED = 201


@dataclass(frozen=True, order=True)
class Right:
    """A verb on a resource (`plural` or `plural/subresource`) of an API group, which is empty for the core group."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource} ({self.group or 'core'})"


_DRIVERS = "operator/tests/integration/test_drivers_rights.py::"
UNSEEN: Mapping[Right, str] = {
    **{
        Right(GROUP, f"{plural}/finalizers", "update"): (
            "operator/tests/integration/test_rights_are_used.py::test_each_right_is_used_by_some_story_or_told_why_not"
        )
        for plural in PLURALS
    },
    Right(RBAC, "clusterroles", "bind"): f"{_DRIVERS}test_a_driver_gets_what_it_needs_by_a_binding_and_the_operator_has_none_of_it",
    Right(GROUP, "executors", "run"): f"{_DRIVERS}test_executors_may_run_as_the_account_of_their_job_by_a_mark_in_a_role",
    Right(GROUP, "executors", "mount"): f"{_DRIVERS}test_executors_may_have_the_secrets_of_their_job_by_a_mark_in_a_role",
}
"""Rights that the API server asks for inside of another request, where no log shows them, and the test that fails without."""


@dataclass(frozen=True)
class Comparison:
    """Sorted rights: those that were given and not used, without and with an explanation, and those that were asked for and not given."""

    unused: tuple[Right, ...]
    unseen: tuple[Right, ...]
    forbidden: tuple[Right, ...]


def granted(objects: Sequence[Mapping[str, Any]]) -> frozenset[Right]:
    """The rights that bindings among these objects give the operator's ServiceAccount."""
    account = OPERATOR_USER.split(":")[2:]
    rules = {role_key(each["kind"], each["metadata"]): each["rules"] for each in objects if each["kind"] in ("Role", "ClusterRole")}
    found: set[Right] = set()
    for binding in (each for each in objects if each["kind"] in ("RoleBinding", "ClusterRoleBinding")):
        if account in [[subject.get("namespace"), subject["name"]] for subject in binding["subjects"]]:
            place = {**binding["roleRef"], "namespace": binding["metadata"].get("namespace")}
            found.update(right for rule in rules[role_key(binding["roleRef"]["kind"], place)] for right in _rights_of(rule))
    return frozenset(found)


def _rights_of(rule: Mapping[str, Any]) -> Iterator[Right]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            yield from (Right(group, resource, verb) for verb in rule["verbs"])


def taken_by(request: Request) -> tuple[Right, ...]:
    """The rights that a request needs. A patch that makes its object is a server-side apply, which needs `create`, too."""
    right = Right(request.group, request.resource, request.verb)
    made = request.verb == "patch" and request.code == CREATED
    return (right, Right(request.group, request.resource, "create")) if made else (right,)


def compared(given: frozenset[Right], requests: Iterable[Request], unseen: Mapping[Right, str] = UNSEEN) -> Comparison:
    """Returns what is given and not used, and what was asked for and not given."""
    used: set[Right] = set()
    forbidden: set[Right] = set()
    for request in requests:
        (forbidden if request.forbidden else used).update(taken_by(request))
    unused = given - used
    return Comparison(tuple(sorted(unused - unseen.keys())), tuple(sorted(unused & unseen.keys())), tuple(sorted(forbidden)))


def told(comparison: Comparison, unseen: Mapping[Right, str] = UNSEEN) -> list[str]:
    """Returns it as lines to read."""
    return [
        *(f"not used: {right}" for right in comparison.unused),
        *(f"not seen: {right}; without it this fails: {unseen[right]}" for right in comparison.unseen),
        *(f"forbidden: {right}" for right in comparison.forbidden),
    ]


def charts_rights() -> frozenset[Right]:
    """What the chart gives the operator, by Helm: where all namespaces are watched, and where some are."""
    return granted(rendered()) | granted(rendered("watchNamespaces={some}"))


def _requests_in(logs: Iterable[Path]) -> Iterator[Request]:
    for path in logs:
        with path.open("rb") as log:
            found = list(requests_of(distinct(log)))
        print(f"{path}: {len(found)} kinds of requests")
        yield from found


def main(logs: Sequence[Path]) -> int:
    """Prints the comparison; the exit code."""
    if not logs:
        print("no audit log is kept yet: `make e2e` and `make integration-operator` keep one at their end")
        return 1
    given = charts_rights()
    comparison = compared(given, _requests_in(logs))
    print(*told(comparison), sep="\n")
    print(f"{len(given) - len(comparison.unused) - len(comparison.unseen)} of {len(given)} rights are used")
    return 1 if comparison.unused else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Which of its rights the operator has used.")
    parser.add_argument("logs", type=Path, nargs="*", help="audit logs, one JSON object a line; by default those of the last runs")
    sys.exit(main(parser.parse_args().logs or sorted(kept_in(Path(os.environ[CACHE])).glob("*.jsonl"))))
