"""Why a restore failed; each class is one exit code. InvariantViolated stands for a contradiction to the checkpoint."""

from __future__ import annotations


class RestoreRefused(ValueError):  # noqa: N818 - a refusal is an answer, not a fault of the program
    """The request can't be fulfilled; a retry is useless. Exit code 2."""


class RestoreRetryable(RuntimeError):  # noqa: N818 - as above
    """Something needed is unavailable now. Exit code 3."""
