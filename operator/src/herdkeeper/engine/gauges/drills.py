"""Gauges of the newest finished restore drill of each ScheduledCheckpoint, by its status."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from prometheus_client import Gauge

from herdkeeper.api import ScheduledCheckpoint
from herdkeeper.shared.names import ObjectKey

_SCHEDULE = ["namespace", "schedule"]
FAILED = Gauge("herdkeeper_restore_drill_failed", "1 when the newest restore drill that ended failed, else 0.", _SCHEDULE)
SECONDS = Gauge("herdkeeper_restore_drill_seconds", "Seconds that the newest restore drill that succeeded took.", _SCHEDULE)
SUCCEEDED = Gauge("herdkeeper_restore_drill_last_success_timestamp_seconds", "When the newest successful restore drill ended.", _SCHEDULE)


def show_drill(schedule: ScheduledCheckpoint, drill: Mapping[str, Any] | None) -> None:
    """Shows a drill. A running one changes nothing; None removes the gauges."""
    labels = (schedule.metadata.namespace, schedule.metadata.name)
    if drill is None:
        forget_drill(ObjectKey(*labels))
        return
    if drill.get("lastSuccessfulTime"):
        SUCCEEDED.labels(*labels).set(datetime.fromisoformat(drill["lastSuccessfulTime"]).timestamp())
    if drill["outcome"] != "Running":
        FAILED.labels(*labels).set(drill["outcome"] == "Failed")
    if drill["outcome"] == "Succeeded":
        SECONDS.labels(*labels).set(drill.get("seconds") or 0)


def forget_drill(schedule: ObjectKey) -> None:
    """Removes the gauges of a schedule that is deleted or has no drills."""
    for gauge in (FAILED, SECONDS, SUCCEEDED):
        gauge.remove(schedule.namespace, schedule.name)
