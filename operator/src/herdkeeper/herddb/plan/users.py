"""Makes changed users reach the nodes sooner.

The kubelet refreshes mounts about every 90 seconds, or at once if the pod changes. An annotation on the pods of all late nodes shortens the
time with mixed users. Nothing depends on it.
"""

from __future__ import annotations

from herdkeeper.codecs.herddb.users import revision_of
from herdkeeper.herddb.state.fleet import SqlFleet
from herdkeeper.planning.actions import Annotate
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json, annotation
from herdkeeper.shared.reason import Reason


def refresh_users(fleet: SqlFleet) -> tuple[Annotate, ...]:
    """Returns annotations for pods whose nodes report outdated users, once per users file."""
    revision = revision_of(fleet.users_file)
    if revision is None:
        return ()
    pods = {node: fleet.objects.get("Pod", node) for node in fleet.present if _is_late(fleet, node, revision)}
    return tuple(
        Annotate("Pod", node, pod["metadata"]["uid"], {names.USERS_ANNOTATION: revision}, Reason.USERS_CHANGING)
        for node, pod in pods.items()
        if pod is not None and _is_unmarked(pod, revision)
    )


def _is_late(fleet: SqlFleet, node: str, revision: str) -> bool:
    report = fleet.reports.get(node)
    return report is not None and report.users is not None and report.users.revision != revision


def _is_unmarked(pod: Json, revision: str) -> bool:
    return not pod["metadata"].get("deletionTimestamp") and annotation(pod, names.USERS_ANNOTATION) != revision
