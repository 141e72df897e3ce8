"""Looks at a schedule: the runs that it made."""

from __future__ import annotations

import datetime

from herdkeeper.api import ScheduledCheckpoint, ScheduledReplicationAudit
from herdkeeper.api.resource import API_VERSION
from herdkeeper.build.scheduled_run import kind_of_runs
from herdkeeper.domain.names import ObjectKey
from herdkeeper.domain.observed.objects import Json
from herdkeeper.domain.observed.schedule import ScheduleObserved, run_of
from herdkeeper.domain.unknown import Unknown
from herdkeeper.observe.kubernetes import parsed_wholly
from herdkeeper.observe.world import World


def observe_schedule(schedule: ScheduledCheckpoint | ScheduledReplicationAudit, world: World) -> ScheduleObserved:
    """The runs of this schedule, not those of one that had its name before, and the present time."""
    metadata = schedule.metadata
    kind, _ = kind_of_runs(schedule)
    found = world.kubernetes.owned(schedule.KIND, ObjectKey(metadata.namespace, metadata.name), ((API_VERSION, kind.KIND),))
    mine = [document for document in found.of_kind(kind.KIND) if _is_owned_by(document, metadata.uid)]
    now = datetime.datetime.now(datetime.UTC)
    made = parsed_wholly(kind, mine)
    if isinstance(made, Unknown):
        return ScheduleObserved(made, now)
    return ScheduleObserved(tuple(sorted((run_of(each) for each in made), key=lambda run: (run.due, run.name))), now)


def _is_owned_by(document: Json, uid: str) -> bool:
    return any(reference["uid"] == uid for reference in document["metadata"].get("ownerReferences") or [])
