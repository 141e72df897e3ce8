"""An audit whose Job succeeded, but whose driver's termination message is lost or unreadable: its result is unknown."""

from __future__ import annotations

from herdkeeper.api import ReplicationAudit
from herdkeeper.jobs.state import JobObserved
from herdkeeper.protocol.job_summary import AuditSummary, SummaryError
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json, is_owned_by, job_ended, pods_of_job, termination_message_of

_ENDED = ("Succeeded", "Failed")
"""Final phases of a pod."""


def message_may_come(audit: ReplicationAudit, seen: JobObserved) -> bool:
    """Returns whether the Job succeeded, and a pod without a message has not been seen to end: Jobs and pods are read one
    after the other.
    """
    job = job_of(audit)
    running = (pod.get("status", {}).get("phase") not in _ENDED for pod in pods_of_job(seen.objects, job))
    return ended_well(audit, seen) is not None and termination_message_of(seen.objects, job) is None and any(running)


def unknown_result(audit: ReplicationAudit, seen: JobObserved) -> str | None:
    """Returns why an audit's result is unknown although its Job succeeded: what is wrong with the driver's termination message.

    None if it is readable, or for a run with a window: one that may have paused runs again and reports then. Call it only once no message
    may come any more (`message_may_come`).
    """
    job = job_of(audit)
    if ended_well(audit, seen) is None:
        return None
    said = termination_message_of(seen.objects, job)
    if said is None:
        return None if audit.spec.window is not None else "is lost"
    try:
        AuditSummary.from_json(said)
    except SummaryError as error:
        return f"can't be read ({error})"
    return None


def job_of(audit: ReplicationAudit) -> str:
    """Returns the name of its Job."""
    return names.job_name(audit.key, names.AUDIT_COMPONENT)


def ended_well(audit: ReplicationAudit, seen: JobObserved) -> Json | None:
    """Returns its Job if that succeeded, or None. An earlier audit of this name may have left one."""
    job = seen.objects.get("Job", job_of(audit))
    return job if job is not None and is_owned_by(job, audit.metadata.uid) and job_ended(job) == "Complete" else None
