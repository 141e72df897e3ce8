"""Changes of a status that are reported as an event of the resource and as a log line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from herdkeeper.api.resource import Resource
from herdkeeper.herddb.tablespace.status_full_check import newly_failed, newly_missed
from herdkeeper.jobs.drill.status import drill_ended, drill_sentence
from herdkeeper.planning.status import stored_status
from herdkeeper.shared.conditions import FIELDS_READ, LOG_REPLAYABLE, LOG_USED_IN_TIME, READY, REPLICAS_VERIFIED, USERS_IN_FORCE
from herdkeeper.shared.reason import Reason

TOLD_WHEN_FALSE = (REPLICAS_VERIFIED, LOG_USED_IN_TIME, LOG_REPLAYABLE, FIELDS_READ)


@dataclass(frozen=True)
class News:
    """One report. `topic` is the text of the log line."""

    topic: str
    reason: Reason
    message: str
    warning: bool


def news_of(resource: Resource, status: dict[str, Any]) -> tuple[News, ...]:
    """Returns what is new in `status`, compared with the stored one."""
    before = stored_status(resource)
    conditions = [(_entry(before, kind), _entry(status, kind)) for kind in TOLD_WHEN_FALSE]
    return (
        *_ready(_entry(before, READY), _entry(status, READY)),
        *(each for was, now in conditions for each in _turned(was, now)),
        *_users(_entry(before, USERS_IN_FORCE), _entry(status, USERS_IN_FORCE)),
        *_drill(before.get("lastDrill"), status.get("lastDrill")),
        *_full_check(before.get("fullCheck"), status.get("fullCheck")),
    )


def _ready(was: dict[str, Any] | None, now: dict[str, Any] | None) -> Iterator[News]:
    """Reports another status or reason of Ready."""
    if now is None or (was is not None and (was["status"], was["reason"]) == (now["status"], now["reason"])):
        return
    reason = Reason(now["reason"])
    yield News("ready changed", reason, now["message"], reason.needs_person)


def _turned(was: dict[str, Any] | None, now: dict[str, Any] | None) -> Iterator[News]:
    """Reports a condition that turned False, or is no longer False. A change between True and Unknown is not reported."""
    before = was["status"] if was is not None else None
    if now is None or now["status"] == before or "False" not in (before, now["status"]):
        return
    yield News(f"{now['type']} is {now['status']}", Reason(now["reason"]), now["message"], now["status"] == "False")


def _users(was: dict[str, Any] | None, now: dict[str, Any] | None) -> Iterator[News]:
    """Reports users that differ from their Secrets, and that no longer do. Every change of users takes a while to load; that is no news."""
    if now is None or now["reason"] == Reason.USERS_CHANGING or (was is not None and was["message"] == now["message"]):
        return
    yield News("users changed", Reason(now["reason"]), now["message"], now["status"] != "True")


def _drill(before: dict[str, Any] | None, after: dict[str, Any] | None) -> Iterator[News]:
    """Reports the result of a restore drill."""
    ended = drill_ended(before, after)
    if ended is not None:
        reason = Reason.DRILLED if ended["outcome"] == "Succeeded" else Reason.DRILL_FAILED
        yield News("restore drill ended", reason, drill_sentence(ended), reason.needs_person)


def _full_check(before: dict[str, Any] | None, after: dict[str, Any] | None) -> Iterator[News]:
    """Reports replicas that failed a full check, and a missed time."""
    for failed in newly_failed(before, after):
        yield News("full check failed", Reason.FULL_CHECK_FAILED, failed, warning=True)
    if (missed := newly_missed(before, after)) is not None:
        yield News("full check missed", Reason.TIME_MISSED, missed, warning=False)


def _entry(status: dict[str, Any], kind: str) -> dict[str, Any] | None:
    return next((entry for entry in status.get("conditions") or () if entry["type"] == kind), None)
