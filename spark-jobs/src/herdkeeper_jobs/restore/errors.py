"""Why a restore did not succeed; each class is one exit code. What contradicts the checkpoint is its InvariantViolated."""

from __future__ import annotations


class RestoreRefused(ValueError):  # noqa: N818 - a refusal is an answer, not a fault of the program
    """The request can't be fulfilled as it is; trying again is useless. Exit code 2."""


class RestoreRetryable(RuntimeError):  # noqa: N818 - as above
    """Something that is needed is not there now. Exit code 3."""
