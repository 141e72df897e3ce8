"""Looks at a schedule: the runs that it made."""

from __future__ import annotations

import datetime

from herdkeeper.api import ScheduledCheckpoint, ScheduledReplicationAudit
from herdkeeper.api.resource import API_VERSION
from herdkeeper.build.scheduled_run import kind_of_runs
from herdkeeper.domain.names import ObjectKey
from herdkeeper.domain.observed.objects import Json
from herdkeeper.domain.observed.schedule import Run, ScheduleObserved, run_of
from herdkeeper.domain.unknown import Unknown
from herdkeeper.observe.kubernetes import Unreadable, parsed
from herdkeeper.observe.world import World


def observe_schedule(schedule: ScheduledCheckpoint | ScheduledReplicationAudit, world: World) -> ScheduleObserved:
    """The runs of this schedule, not those of one that had its name before, and the present time."""
    metadata = schedule.metadata
    kind, _ = kind_of_runs(schedule)
    found = world.kubernetes.owned(schedule.KIND, ObjectKey(metadata.namespace, metadata.name), ((API_VERSION, kind.KIND),))
    mine = [document for document in found.of_kind(kind.KIND) if _is_owned_by(document, metadata.uid)]
    now = datetime.datetime.now(datetime.UTC)
    runs: list[Run] = []
    for document in mine:
        made = parsed(kind, document)
        if isinstance(made, Unreadable):
            return ScheduleObserved(Unknown(f"the {kind.KIND} {document['metadata']['name']} can't be read: {_first_error(made)}"), now)
        if made.status is None and document.get("status"):  # of another version: whether it is over, and verified, is not known
            return ScheduleObserved(Unknown(f"the status of the {kind.KIND} {made.metadata.name} can't be read"), now)
        runs.append(run_of(made))
    return ScheduleObserved(tuple(sorted(runs, key=lambda run: (run.due, run.name))), now)


def _is_owned_by(document: Json, uid: str) -> bool:
    return any(reference["uid"] == uid for reference in document["metadata"].get("ownerReferences") or [])


def _first_error(made: Unreadable) -> str:
    problem = made.error.errors()[0]
    return f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
