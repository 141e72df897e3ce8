"""The next SQL node to restart with a changed template: followers first, leaders last, one at a time, each after its leaderships left it.

The StatefulSet's own update would go by number, and stop leaders that nobody has relieved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from herdkeeper.domain.observed.herddb import HerdDBObserved
from herdkeeper.domain.observed.objects import Json, is_ready
from herdkeeper.domain.reason import Reason
from herdkeeper.domain.unknown import Unknown
from herdkeeper.plan.action import Delete, Wait
from herdkeeper.plan.default_tablespace import DEFAULT_TABLESPACE
from herdkeeper.plan.rolling import Gate

REVISION_LABEL = "controller-revision-hash"


@dataclass(frozen=True)
class Relieve:
    """This node is next, once it leads nothing that another one could lead."""

    node: str


def next_restart(stateful_set: str, seen: HerdDBObserved, pods: Sequence[str], gate: Gate) -> Delete | Relieve | Wait | None:
    """What the roll needs now; None when every pod is of the present template, or that can't be told."""
    stale = _stale(stateful_set, seen, pods)
    if not stale:
        return None
    for name, pod in stale.items():
        if not is_ready(pod) and not pod["metadata"].get("deletionTimestamp") and name not in gate.unreachable:
            return _delete(pod, name)  # one that does not serve can't be disturbed, and would never be mended otherwise
    if why := gate.closed_by or _unsettled(seen, pods):
        return Wait(Reason.WAITING_FOR_OTHERS, f"the next SQL node is restarted once nothing else is disturbed: {why}")
    name = min(stale, key=lambda each: (*_weight(seen, each), each))
    return Relieve(name) if _led(seen, name) else _delete(stale[name], name)


def _stale(stateful_set: str, seen: HerdDBObserved, pods: Sequence[str]) -> dict[str, Json]:
    item = seen.objects.get("StatefulSet", stateful_set)
    status = (item or {}).get("status", {})
    if item is None or (status.get("observedGeneration") or 0) < item["metadata"].get("generation", 0):
        return {}
    found = {name: pod for name in pods if (pod := seen.objects.get("Pod", name)) is not None}
    revisions = {name: (pod["metadata"].get("labels") or {}).get(REVISION_LABEL) for name, pod in found.items()}
    wanted = status.get("updateRevision")
    return {name: found[name] for name, revision in revisions.items() if wanted and revision and revision != wanted}


def _unsettled(seen: HerdDBObserved, pods: Sequence[str]) -> str | None:
    """Why a node that goes away now could be missed; None when every copy of every tablespace is settled."""
    unready = [pod for pod in pods if not seen.objects.pod_ready(pod)]
    if unready:
        return f"{' and '.join(unready)} is not Ready"
    if isinstance(seen.records, Unknown):
        return seen.records.why
    for name, found in sorted(seen.records.items()):
        for node in found.record.replicas:
            view = seen.nodes.get(node, Unknown(f"{node} was not asked"))
            if isinstance(view, Unknown):
                return view.why
            if not any(copy.name == found.record.name and copy.ready for copy in view):
                return f"{node} has not settled its copy of {name}"
    return None


def _led(seen: HerdDBObserved, node: str) -> list[str]:
    """The tablespaces that the node leads and another one could lead."""
    if isinstance(seen.records, Unknown):
        return []
    return [name for name, found in seen.records.items() if found.record.leader == node and len(found.record.replicas) > 1]


def _weight(seen: HerdDBObserved, node: str) -> tuple[int, int]:
    """Leaderships that the restart of a node moves: first those of tablespaces with users' rows, then all.

    Where every node leads something, one that leads the default tablespace alone goes first: what others lead moves once, not twice.
    """
    led = _led(seen, node)
    return len([name for name in led if name != DEFAULT_TABLESPACE]), len(led)


def _delete(pod: Json, name: str) -> Delete:
    return Delete("v1", "Pod", name, pod["metadata"]["uid"], Reason.ROLLING)
