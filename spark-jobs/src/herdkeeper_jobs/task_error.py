"""Extracts the cause from an error of a task or of Spark: Spark passes it on as the text of a traceback."""

from __future__ import annotations

import re

from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.protocol.job_summary import JobOutcome
from herdkeeper_jobs.errors import InvariantViolated, KeyUnusable
from herdkeeper_jobs.wal.spans import LogInconsistentError

_OURS = re.compile(r"(herdkeeper[\w.]*\.\w+|\w+Error): ")


_OF_JAVA = re.compile(r": (?=[\w.$]+)")
"""How py4j begins the line with Java's exception."""
_VIOLATIONS = (LogInconsistentError, MalformedDataError, InvariantViolated)
_LOST_WORKER = "Python worker exited unexpectedly"


def essence(text: str) -> str:
    """Returns the line that names the cause: the last one with our or Python's error, else Java's, else the first."""
    if _LOST_WORKER in text:
        return "a task's Python process was killed, most likely since memory ran out: raise the resources of the job, or of its executors"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for pattern in (_OURS, _OF_JAVA):
        if named := [line for line in lines if pattern.match(line)]:
            return named[-1].removeprefix(": ")
    return lines[0] if lines else "failed without a message"


def outcome_of_tasks(text: str) -> JobOutcome:
    """The outcome of a job whose task failed."""
    if any(kind.__name__ in text for kind in _VIOLATIONS):
        return JobOutcome.INVARIANT_VIOLATED
    return JobOutcome.CONFIGURATION_REFUSED if KeyUnusable.__name__ in text else JobOutcome.RETRYABLE
