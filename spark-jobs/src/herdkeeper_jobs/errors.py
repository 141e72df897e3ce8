"""Why a checkpoint or a restore failed; each class is one exit code."""

from __future__ import annotations

from herdkeeper.protocol.job_summary import FollowerComparison


class CheckpointRefused(ValueError):  # noqa: N818 - a refusal is an answer, not a fault of the program
    """The request can't be fulfilled; a retry is useless. Exit code 2."""


class LogDropped(CheckpointRefused):
    """The log no longer has a ledger that must be read."""


class NothingToBeginWith(CheckpointRefused):
    """The log lacks its beginning, and there is no base. `missing`: what the log lacks; `no_base`: why there is no base; both without
    advice."""

    def __init__(self, message: str, missing: str, no_base: str) -> None:
        super().__init__(message)
        self.missing = missing
        self.no_base = no_base


class BaseLockedAway(NothingToBeginWith):
    """A checkpoint can be the base once somebody does what `no_base` says; nothing else may replace it."""


class LsnNotInLog(LogDropped):
    """The requested LSN's ledger is not in the log: it was dropped, or never was there."""


class KeyUnusable(CheckpointRefused):
    """Encrypted data can't be read or written with the present keys; names the file or Secret, the key and what to do."""


class CheckpointRetryable(RuntimeError):  # noqa: N818 - as above
    """Something needed is unavailable now. Exit code 3."""


class NotConfirmedYet(CheckpointRetryable):
    """An LSN is after the last entry known to be confirmed."""


class InvariantViolated(RuntimeError):  # noqa: N818 - as above
    """The log, a follower or a written file contradicts another one. Exit code 42: never retry, investigate."""


class FollowerDiffers(InvariantViolated):
    """A follower's rows differ from the fold of the log at the same LSN. `comparison` names it and the tables."""

    def __init__(self, message: str, comparison: FollowerComparison) -> None:
        super().__init__(message)
        self.comparison = comparison


class LeaderDiffers(InvariantViolated):
    """The leader's number of rows differs from the fold of the log at the same LSN."""


class RestoreRefused(ValueError):  # noqa: N818 - as above
    """The restore can't be fulfilled; a retry is useless. Exit code 2."""


class RestoreRetryable(RuntimeError):  # noqa: N818 - as above
    """Something that the restore needs is unavailable now. Exit code 3."""


class LogTruncatedError(RuntimeError):
    """The next part of the log for a reader was dropped: its changes can't be read from the log any more."""
