"""What a person needs to know of an error that happened in a task: Spark hands it on as the text of a traceback."""

from __future__ import annotations

import re
from collections.abc import Sequence

from herdkeeper.domain.job_summary import JobOutcome
from herdkeeper_jobs.checkpoint.errors import KeyUnusable

_OURS = re.compile(r"(herdkeeper[\w.]*\.\w+|\w+Error): ")


def essence(text: str) -> str:
    """The line that names the cause: the last one that names an error of ours, or of Python, else the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if _OURS.match(line)]
    return (named or lines or ["failed without a message"])[-1 if named else 0]


def outcome_of_tasks(text: str, violations: Sequence[str]) -> JobOutcome:
    """How a job ends for the error of one of its tasks; `violations` are the names of errors that contradict something."""
    if any(name in text for name in violations):
        return JobOutcome.INVARIANT_VIOLATED
    return JobOutcome.CONFIGURATION_REFUSED if KeyUnusable.__name__ in text else JobOutcome.RETRYABLE
