"""The window of a ReplicationAudit: when its Job may read, and when one that paused goes on."""

from __future__ import annotations

import datetime

from herdkeeper.api import ReplicationAudit
from herdkeeper.api.replication_audit import Window
from herdkeeper.jobs.audit.end import ended_well, job_of, message_may_come
from herdkeeper.jobs.state import JobObserved
from herdkeeper.protocol.job_summary import AuditSummary, JobOutcome, SummaryError
from herdkeeper.shared.daily_window import DailyWindow
from herdkeeper.shared.objects import Json, termination_message_of
from herdkeeper.shared.time import moment_of
from herdkeeper.spark.build_job import READ_UNTIL

SHORTEST_WINDOW = datetime.timedelta(minutes=30)
"""A Job starts and finds out how far it got before it reads; in less it would do only that, day by day."""


def window_of(window: Window) -> DailyWindow:
    """As it is declared. Raises UnknownTimeZoneError."""
    return DailyWindow.of(window.from_, window.to, window.time_zone)


def described(window: Window) -> str:
    """For people."""
    return f"{window.from_} to {window.to} ({window.time_zone})"


def resumes_at(audit: ReplicationAudit, seen: JobObserved) -> datetime.datetime | None:
    """When a paused run goes on: as soon as a window is open, after its Job has ended, that closes later than the one of that Job. So it
    does not go on in the same one, where the pod's clock is early, and does at once when its hours were changed and are open now. None for
    a run that is not paused, and for one whose driver's words may still come.

    A Job that ended well, and whose driver's words are lost, may have paused: when it is run again, it tells how the run ended, if it has.
    Words that are there and can't be read would be there again, night after night: they end the run (`audit_end.unknown_result`).
    """
    job = ended_well(seen, job_of(audit))
    if (
        audit.spec.window is None
        or job is None
        or _reports_an_end(termination_message_of(seen.objects, job_of(audit)))
        or message_may_come(audit, seen)
    ):
        return None
    ended = moment_of(job["status"].get("completionTime")) or present(seen)
    window, closed = window_of(audit.spec.window), read_until(job)
    opens = window.opening_after(ended) if closed is None else window.open_again(ended, closed)
    missed = opens <= present(seen) and window.closing(present(seen)) is None
    return window.opening_after(present(seen)) if missed else opens


def read_until(job: Json) -> datetime.datetime | None:
    """When the window closes, or closed, with which a Job of an audit was made; None for one that was made without."""
    given = next(each.get("args") or [] for each in job["spec"]["template"]["spec"]["containers"] if each["name"] == "driver")
    return moment_of(given[given.index(READ_UNTIL) + 1]) if READ_UNTIL in given else None


def present(seen: JobObserved) -> datetime.datetime:
    """The time of the observation. ValueError without one."""
    if seen.now is None:
        raise ValueError("an audit was observed without a time")
    return seen.now


def _reports_an_end(said: str | None) -> bool:
    try:
        return said is not None and AuditSummary.from_json(said).outcome is not JobOutcome.PAUSED
    except SummaryError:
        return True
