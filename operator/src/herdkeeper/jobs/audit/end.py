"""What is known of an audit whose Job has ended well: nothing, where its driver's termination message is lost or can't be read."""

from __future__ import annotations

from herdkeeper.api import ReplicationAudit
from herdkeeper.jobs.state import JobObserved
from herdkeeper.protocol.job_summary import AuditSummary, SummaryError
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json, job_ended, pods_of_job, termination_message_of

_ENDED = ("Succeeded", "Failed")
"""Phases of a pod that says nothing more."""


def message_may_come(audit: ReplicationAudit, seen: JobObserved) -> bool:
    """Whether the Job has ended well, and a pod of it has said nothing, and was not seen to have ended: Jobs and pods are looked at one
    after the other."""
    job = job_of(audit)
    running = (pod.get("status", {}).get("phase") not in _ENDED for pod in pods_of_job(seen.objects, job))
    return ended_well(seen, job) is not None and termination_message_of(seen.objects, job) is None and any(running)


def unknown_result(audit: ReplicationAudit, seen: JobObserved) -> str | None:
    """Why an audit's result is unknown though its Job succeeded: what is wrong with its driver's termination message. None where they
    can be read, or are those of a run with a window: one that may have paused is started again, and tells then. Whoever asks has seen that
    none may come any more (`message_may_come`)."""
    job = job_of(audit)
    if ended_well(seen, job) is None:
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
    """The name of its Job."""
    return names.job_name(audit.key, names.AUDIT_COMPONENT)


def ended_well(seen: JobObserved, name: str) -> Json | None:
    """The Job of that name, if it has ended well."""
    job = seen.objects.get("Job", name)
    return job if job is not None and job_ended(job) == "Complete" else None
