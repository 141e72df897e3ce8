"""ScheduledCheckpoint: Checkpoints on a schedule, and which of them are kept."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from herdkeeper.api.checkpoint import CheckpointSpec
from herdkeeper.api.job import job_rules, place_rules
from herdkeeper.api.resource import Instant, Model, PrinterColumn, Resource, Rule
from herdkeeper.api.restore_drill import DRILL_RULES, Drill, DrillStatus
from herdkeeper.api.schedule import SCHEDULE_COLUMNS, SCHEDULE_RULES, Duration, Schedule, ScheduleStatus


class Retention(Model):
    """Which verified checkpoints are kept: those that one of the fields selects, and always the newest one of each log."""

    keep_last: int = Field(7, ge=1, le=1000, description="How many of the newest Checkpoints are kept.")
    keep_within: Duration | None = Field(
        None,
        description="The recovery window, in minutes, hours or days (`36h`, `30d`), counted back from the newest checkpoint: all "
        "completed in it are kept, and the newest one before it.",
    )


class ScheduledCheckpointSpec(Schedule):
    """When checkpoints are made, of what, and which are kept."""

    retention: Retention = Field(
        Retention(),
        description="Which Checkpoints are kept. Others are deleted, with their files at the destination if `template.deletionPolicy` "
        "is Delete.",
    )
    drill: Drill | None = Field(
        None,
        description="When a checkpoint is restored into a temporary database and compared, as a drill. Absent: never.",
    )
    template: CheckpointSpec = Field(description="The spec of each Checkpoint. A change applies to later ones.")


class ScheduledCheckpointStatus(ScheduleStatus):
    """What the schedule has done, and its checkpoints."""

    newest_verified: str | None = Field(None, description="The newest Checkpoint that was verified.")
    newest_verified_time: Instant | None = Field(None, description="When it was completed.")
    verified: int | None = Field(None, description="Number of verified Checkpoints.")
    drills_since: Instant | None = Field(
        None,
        description="When `drill` was first seen, or the last drill of an earlier tablespace was due. Earlier times are not made up for.",
    )
    last_drill: DrillStatus | None = Field(None, description="The newest drill.")


class ScheduledCheckpoint(Resource):
    """A schedule of checkpoints."""

    KIND: ClassVar[str] = "ScheduledCheckpoint"
    PLURAL: ClassVar[str] = "scheduledcheckpoints"
    SHORT_NAME: ClassVar[str] = "sckpt"
    SUMMARY: ClassVar[str] = "Checkpoints of a tablespace on a schedule. The newest verified one is never deleted."
    COLUMNS: ClassVar[tuple[PrinterColumn, ...]] = SCHEDULE_COLUMNS
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="!has(self.template.target)",
            message="spec.template.target would make the same checkpoint each time: remove it, or create a Checkpoint",
            field_path=".template",
        ),
        *place_rules("template.destination"),
        *job_rules("template.job"),
        *DRILL_RULES,
        *SCHEDULE_RULES,
    )

    spec: ScheduledCheckpointSpec
    status: ScheduledCheckpointStatus | None = None
