"""The window of a ReplicationAudit: when its Job may read, and when a paused one resumes."""

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
"""A Job starts and finds its position before it reads. In a shorter window it would do only that, day after day."""


def window_of(window: Window) -> DailyWindow:
    """Returns the declared window. Raises UnknownTimeZoneError."""
    return DailyWindow.of(window.from_, window.to, window.time_zone)


def described(window: Window) -> str:
    """Returns the window as text."""
    return f"{window.from_} to {window.to} ({window.time_zone})"


def resumes_at(audit: ReplicationAudit, seen: JobObserved) -> datetime.datetime | None:
    """Returns when a paused run resumes: after its Job has ended, once a window is open that closes later than that Job's.

    So it does not resume in the same window if the pod's clock is early, but resumes at once if changed hours are open now. None for a run
    that is not paused, or whose driver's message may still come.

    A Job that succeeded without a message may have paused: run again, it reports the end, if any. An unreadable message would recur each
    night, so it ends the run (`audit_end.unknown_result`).
    """
    job = ended_well(audit, seen)
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
    """Returns the closing time with which an audit's Job was created, or None if without."""
    given = next(each.get("args") or [] for each in job["spec"]["template"]["spec"]["containers"] if each["name"] == "driver")
    return moment_of(given[given.index(READ_UNTIL) + 1]) if READ_UNTIL in given else None


def present(seen: JobObserved) -> datetime.datetime:
    """Returns the time of the observation. Raises ValueError without one."""
    if seen.now is None:
        raise ValueError("an audit was observed without a time")
    return seen.now


def _reports_an_end(said: str | None) -> bool:
    try:
        return said is not None and AuditSummary.from_json(said).outcome is not JobOutcome.PAUSED
    except SummaryError:
        return True
