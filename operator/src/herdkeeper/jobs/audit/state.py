"""A ReplicationAudit: what is declared, what was observed of its run, and what follows from both."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import cached_property

from herdkeeper.api import BookKeeperCluster, ReplicationAudit
from herdkeeper.api.replication_audit import Window
from herdkeeper.protocol.job_summary import AuditSummary, JobOutcome
from herdkeeper.shared import names
from herdkeeper.shared.daily_window import DailyWindow
from herdkeeper.shared.objects import Json, Objects, pods_of_job
from herdkeeper.shared.time import moment_of
from herdkeeper.shared.unknown import Unknown
from herdkeeper.spark.build_job import READ_UNTIL
from herdkeeper.spark.run import Run, observe_run

_ENDED = ("Succeeded", "Failed")
"""Final phases of a pod."""
_LONGEST_WINDOW = datetime.timedelta(hours=25)
"""A day on which clocks go back."""


def window_of(window: Window) -> DailyWindow:
    """Returns the declared window. Raises UnknownTimeZoneError."""
    return DailyWindow.of(window.from_, window.to, window.time_zone)


def described(window: Window) -> str:
    return f"{window.from_} to {window.to} ({window.time_zone})"


def is_of(cluster: BookKeeperCluster, instance_id: str | None, ended: datetime.datetime | None) -> bool:
    """Returns whether an ended audit was of this cluster, not of an earlier one of its name, by the status of both. One that was
    deleted and made anew has the same name and other ledgers.

    `instance_id` is the audit's; an audit of an earlier version has none, and counts if it ended after the cluster was created.
    """
    if instance_id is not None:
        return cluster.status is not None and cluster.status.instance_id == instance_id
    created = moment_of(cluster.metadata.creation_timestamp)
    return created is None or (ended is not None and ended >= created)


@dataclass(frozen=True)
class AuditRun:
    """A ReplicationAudit as declared and as observed. Each derived value is computed once.

    `objects` are its Job and pods; `bookkeeper` is the cluster that it refers to, None if missing; `now` is the time of the observation.
    """

    audit: ReplicationAudit
    objects: Objects
    bookkeeper: BookKeeperCluster | None
    now: datetime.datetime

    @cached_property
    def run(self) -> Run:
        """The state of its Job."""
        return observe_run(self.objects, names.job_name(self.audit.key, names.AUDIT_COMPONENT), self.audit.metadata.uid)

    @cached_property
    def reported(self) -> AuditSummary | Unknown | None:
        """The driver's termination message. None without one; Unknown if it can't be read."""
        return self.run.reported(AuditSummary.from_json)

    @property
    def message_may_come(self) -> bool:
        """Whether the Job succeeded, and a pod without a message has not been seen to end: Jobs and pods are read one after the other."""
        if self.run.phase != "Succeeded" or self.reported is not None:
            return False
        return any(pod.get("status", {}).get("phase") not in _ENDED for pod in pods_of_job(self.objects, self.run.fields["job"]))

    @property
    def result_fault(self) -> str | None:
        """Why the result is unknown although the Job succeeded: what is wrong with the driver's termination message.

        None if it is readable, or for a run with a window: one that may have paused runs again and reports then. Meaningless while a
        message may come.
        """
        if self.run.phase != "Succeeded":
            return None
        match self.reported:
            case None:
                return None if self.audit.spec.window is not None else "is lost"
            case Unknown(why):
                return f"can't be read ({why})"
            case _:
                return None

    @cached_property
    def resumes_at(self) -> datetime.datetime | None:
        """When a paused run resumes: after its Job has ended, once a window is open that closes later than that Job's.

        So it does not resume in the same window if the pod's clock is early, but resumes at once if changed hours are open now. None for a
        run that is not paused, or whose driver's message may still come.

        A Job that succeeded without a message may have paused: run again, it reports the end, if any. An unreadable message would recur
        each night, so it ends the run (`result_fault`).
        """
        declared, job, reported = self.audit.spec.window, self.run.job, self.reported
        over = isinstance(reported, Unknown) or (reported is not None and reported.outcome is not JobOutcome.PAUSED)
        if declared is None or job is None or self.run.phase != "Succeeded" or over or self.message_may_come:
            return None
        ended = moment_of(self.run.fields["completedAt"]) or self.now
        window, closed = window_of(declared), _read_until(job)
        if closed is None:
            opens = window.opening_after(ended)
        else:  # a Job that was created while the clock was ahead has ended in no window that is still to come
            opens = window.open_again(min(ended, self.now), closed if closed - self.now <= _LONGEST_WINDOW else self.now)
        missed = opens <= self.now and window.closing(self.now) is None
        return window.opening_after(self.now) if missed else opens


def _read_until(job: Json) -> datetime.datetime | None:
    """Returns the closing time with which an audit's Job was created, or None if without."""
    given = next(each.get("args") or [] for each in job["spec"]["template"]["spec"]["containers"] if each["name"] == "driver")
    return moment_of(given[given.index(READ_UNTIL) + 1]) if READ_UNTIL in given else None
