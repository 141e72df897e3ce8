"""What resources with scheduled runs share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from herdkeeper.api.resource import Instant, Model, PrinterColumn, Rule, Status, formatted, name_rules, refusal

Duration = Annotated[
    str,
    Field(
        max_length=8,
        pattern=r"^[1-9][0-9]{0,4}(m|h|d)$",
        examples=["36h", "30d"],
        json_schema_extra=refusal("%s is no duration: give a whole number and m, h or d, e.g. 36h or 30d"),
    ),
]
"""A whole number of minutes, hours or days, e.g. `30d`."""

CronExpression = Annotated[str, Field(min_length=1, max_length=100, examples=["0 3 * * *"])]
"""Five fields, as in Debian's crontab(5)."""

FIVE_FIELDS = "minute (0-59), hour (0-23), day of month (1-31), month (1-12), day of week (0-7, 0 and 7 are Sunday), e.g. 0 3 * * *"


TimeZone = Annotated[
    str, Field(min_length=1, max_length=64, description="Time zone of `schedule`, by its IANA name, e.g. `Europe/Vienna`.")
]


class Times(Model):
    """The times of a schedule."""

    schedule: CronExpression = Field(description=f"Cron expression with five fields: {FIVE_FIELDS}.")
    time_zone: TimeZone = "UTC"


class Begin(Model):
    """When a due run is not started."""

    suspend: bool = Field(
        False, description="While true, the schedule starts nothing. Missed times are treated as after an outage of the operator."
    )
    starting_deadline_seconds: int | None = Field(
        None,
        ge=10,
        le=31536000,
        description="A run that can't start within so many seconds of its time is skipped; no limit when absent.",
    )


class Timing(Begin, Times):
    """When something starts by itself, and when not."""


class Schedule(Timing):
    """When runs are made, and which are kept. A time that falls into an active run is skipped."""

    failed_history_limit: int = Field(3, ge=1, le=100, description="How many failed runs are kept.")


class ScheduleStatus(Status):
    """What the schedule has done, and what comes next."""

    last_schedule_time: Instant | None = Field(None, description="The newest time of the schedule at which a run was made.")
    last_successful_time: Instant | None = Field(None, description="When the newest successful run ended.")
    next_schedule_time: Instant | None = Field(None, description="When the next run is due; absent while suspended.")
    last_missed_time: Instant | None = Field(
        None, description="The newest time of the schedule that was skipped, since another run was active or the deadline had passed."
    )
    active: str | None = Field(None, description="The active run.")
    last_request: str | None = Field(None, description="Result of the last run requested by annotation.")


SCHEDULE_COLUMNS = (
    PrinterColumn(name="Schedule", type="string", json_path=".spec.schedule"),
    PrinterColumn(name="Suspend", type="boolean", json_path=".spec.suspend"),
    PrinterColumn(name="Active", type="string", json_path=".status.active"),
    PrinterColumn(name="Last", type="date", json_path=".status.lastScheduleTime"),
    PrinterColumn(name="Success", type="date", json_path=".status.lastSuccessfulTime"),
    # not a date: kubectl shows future ones as invalid
    PrinterColumn(name="Next", type="string", json_path=".status.nextScheduleTime", priority=1),
)


MOST_NAME_CHARACTERS = 25
"""For a schedule's name: its runs append `-` and fourteen digits, and their names have a maximum, too."""

_MATCHES = "matches('^[0-9A-Za-z*,/#-]+( +[0-9A-Za-z*,/#-]+){4}$')"


def five_fields(parent: str | None = None, *, optional: bool = False) -> Rule:
    """Returns the rule that a schedule has five fields: the spec's own, or that of an optional part, e.g. `drill`. `optional`: the part may
    have none.
    """
    field = "schedule" if parent is None else f"{parent}.schedule"
    matches = f"self.{field}.{_MATCHES}"
    absent = f"!has(self.{parent}) || " + (f"!has(self.{field}) || " if optional else "")
    return Rule(
        rule=matches if parent is None else f"{absent}{matches}",
        message=f"spec.{field} does not have the five fields of cron: write {FIVE_FIELDS}",
        message_expression=formatted(f"spec.{field} is %s: it does not have the five fields of cron; write {FIVE_FIELDS}", f"self.{field}"),
        field_path=f".{parent or field}",
    )


SCHEDULE_RULES = (
    five_fields(),
    *name_rules(MOST_NAME_CHARACTERS, "the names of its runs"),
)
"""Rules for every schedule."""
