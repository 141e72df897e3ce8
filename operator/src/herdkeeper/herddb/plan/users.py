"""Decides whether changed users have reached the nodes, and makes them reach a late one sooner.

The kubelet refreshes mounts about every 90 seconds, or at once if the pod changes. An annotation on the pods of all late nodes shortens the
time with mixed users. Nothing depends on it.
"""

from __future__ import annotations

from herdkeeper.codecs.herddb.users import SqlUser, decode_users, revision_of
from herdkeeper.herddb.state.fleet import SqlFleet
from herdkeeper.planning.actions import Annotate
from herdkeeper.shared import names
from herdkeeper.shared.objects import annotation, why_stopping
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason


def why_not_in_force(fleet: SqlFleet, wanted: tuple[SqlUser, ...]) -> tuple[Problem, ...]:
    """Returns what is missing until all nodes accept exactly these users."""
    if decode_users(fleet.users_file) != wanted:
        return (Problem(Reason.USERS_CHANGING, "the users file is being updated"),)
    found = (_why_late(fleet, node, revision_of(fleet.users_file)) for node in fleet.present)
    return tuple(each for each in found if each is not None)


def _why_late(fleet: SqlFleet, node: str, revision: str | None) -> Problem | None:
    """Users in force stay so: a starting process reads the current file. The silence of a node changes nothing."""
    report, status = fleet.reports.get(node), fleet.cluster.status
    if report is None:
        in_force = status is not None and revision is not None and status.users_revision == revision
        if in_force or not fleet.objects.pod_ready(node):  # one that is not Ready and silent loads them before it serves
            return None
        return Problem(Reason.USERS_CHANGING, f"{node} has not reported yet which users may log in")
    if report.users is None:
        return Problem(Reason.IMAGE_TOO_OLD, f"{node} reads its users only at start: set spec.image to an image of this version")
    why = f" ({report.users.refused})" if report.users.refused is not None else ""
    return None if report.users.revision == revision else Problem(Reason.USERS_CHANGING, f"{node} has not loaded them yet{why}")


def refresh_users(fleet: SqlFleet) -> tuple[Annotate, ...]:
    """Returns annotations for pods whose nodes report outdated users, once per users file."""
    revision = revision_of(fleet.users_file)
    if revision is None:
        return ()
    return tuple(
        Annotate("Pod", node, pod["metadata"]["uid"], {names.USERS_ANNOTATION: revision}, Reason.USERS_CHANGING)
        for node in fleet.present
        if _is_late(fleet, node, revision) and (pod := fleet.objects.get("Pod", node)) is not None
        if why_stopping(pod) is None and annotation(pod, names.USERS_ANNOTATION) != revision
    )


def _is_late(fleet: SqlFleet, node: str, revision: str) -> bool:
    report = fleet.reports.get(node)
    return report is not None and report.users is not None and report.users.revision != revision
