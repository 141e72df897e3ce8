"""Builds the Checkpoint or ReplicationAudit of a schedule for one of its times, or on request."""

from __future__ import annotations

import datetime

from herdkeeper.api import Checkpoint, ReplicationAudit, ScheduledCheckpoint, ScheduledReplicationAudit
from herdkeeper.api.checkpoint import Target
from herdkeeper.api.resource import API_VERSION
from herdkeeper.planning import pods as pod
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json
from herdkeeper.shared.time import text_of


def build_run(
    schedule: ScheduledCheckpoint | ScheduledReplicationAudit, moment: datetime.datetime, *, requested: bool, name: str | None = None
) -> Json:
    """Returns the resource of a run. Unless given, its name is derived from `moment`, so a retry creates no second one."""
    name = name or (names.requested_run if requested else names.scheduled_run)(schedule.metadata.name, moment)
    kind, component = kind_of_runs(schedule)
    mark = names.REQUESTED_AT_ANNOTATION if requested else names.DUE_AT_ANNOTATION
    return {
        "apiVersion": API_VERSION,
        "kind": kind.KIND,
        "metadata": {**pod.metadata(schedule, component, name), "annotations": {mark: text_of(moment)}},
        "spec": schedule.spec.template.document(),
    }


def build_drill_checkpoint(schedule: ScheduledCheckpoint, due: datetime.datetime, moment: str) -> Json:
    """Returns the Checkpoint of a past moment for a drill. Its files are always deleted with it."""
    changes = {"target": Target(timestamp=moment), "mode": "Auto", "deletion_policy": "Delete"}
    template = schedule.spec.template.model_copy(update=changes)
    name = names.drill_checkpoint(schedule.metadata.name, due)
    return {
        "apiVersion": API_VERSION,
        "kind": Checkpoint.KIND,
        "metadata": {**pod.metadata(schedule, names.DRILL_COMPONENT, name), "annotations": {names.DUE_AT_ANNOTATION: text_of(due)}},
        "spec": template.document(),
    }


def kind_of_runs(
    schedule: ScheduledCheckpoint | ScheduledReplicationAudit,
) -> tuple[type[Checkpoint] | type[ReplicationAudit], str]:
    """Returns the kind of a schedule's runs, and the component in their labels."""
    match schedule:
        case ScheduledCheckpoint():
            return Checkpoint, names.CHECKPOINT_COMPONENT
        case ScheduledReplicationAudit():
            return ReplicationAudit, names.AUDIT_COMPONENT
