"""The state of a Job with a Spark driver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from herdkeeper.protocol.job_summary import SummaryError
from herdkeeper.shared.objects import (
    JobEnd,
    Json,
    Objects,
    is_owned_by,
    job_ended,
    pod_trouble,
    pods_of_job,
    termination_message_of,
    why_no_termination_message,
)
from herdkeeper.shared.unknown import Unknown

Summary = TypeVar("Summary")


@dataclass(frozen=True)
class Run:
    """The current state of a Job, which is None if it does not exist. `termination_message` is the newest one of its driver.

    `earlier` is why a Job of this name says nothing about this owner. A deleted resource's Job outlives it until Kubernetes collects it,
    and must not count for a new resource of the same name.
    """

    phase: Literal["Pending", "Running", "Succeeded", "Failed"]
    message: str
    termination_message: str | None
    fields: dict[str, Any]
    job: Json | None = None
    earlier: str | None = None

    def reported(self, read: Callable[[str], Summary]) -> Summary | Unknown | None:
        """Returns the termination message as `read` reads it. None without one, Unknown if it can't be read."""
        try:
            return None if self.termination_message is None else read(self.termination_message)
        except SummaryError as error:
            return Unknown(str(error))


def observe_run(objects: Objects, job_name: str, owner_uid: str) -> Run:
    """Returns the state of a Job among the objects of its owner, which has this uid."""
    job = objects.get("Job", job_name)
    if job is None:
        return Run("Pending", "the job has not started yet", None, {"phase": "Pending"})
    if not is_owned_by(job, owner_uid):
        why = f"the Job {job_name} belongs to an earlier resource of this name: it is about to be deleted; if it stays, delete it"
        return Run("Pending", why, None, {"phase": "Pending"}, earlier=why)
    pods, termination_message = pods_of_job(objects, job_name), termination_message_of(objects, job_name)
    fields: dict[str, Any] = {"job": job_name, "startedAt": job.get("status", {}).get("startTime")}
    match job_ended(job):
        case JobEnd(failed=False, at=at):
            return Run("Succeeded", "the job ended", termination_message, {**fields, "phase": "Succeeded", "completedAt": at}, job)
        case JobEnd(at=at) as end:
            why = _failure(end, termination_message, why_no_termination_message(objects, job_name))
            return Run("Failed", why, termination_message, {**fields, "phase": "Failed", "completedAt": at}, job)
    if any(pod.get("status", {}).get("phase") in ("Running", "Succeeded") for pod in pods):
        return Run("Running", "the job is running", termination_message, {**fields, "phase": "Running"}, job)
    trouble = pod_trouble(pods[-1] if pods else None)
    return Run("Pending", f"the job's pod is waiting: {trouble}", termination_message, {**fields, "phase": "Pending"}, job)


def _failure(end: JobEnd, termination_message: str | None, silently: str | None) -> str:
    ended = f"; its last pod ended without a termination message ({silently})" if silently else ""
    last = f"; the driver reported: {termination_message[:300]}" if termination_message else ended
    return f"{end.reason}: {end.message or ''}{last}"
