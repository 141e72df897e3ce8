"""Why a checkpoint was not made; each class is one exit code."""

from __future__ import annotations

from herdkeeper.protocol.job_summary import FollowerComparison


class CheckpointRefused(ValueError):  # noqa: N818 - a refusal is an answer, not a fault of the program
    """The request can't be fulfilled as it is; trying again is useless. Exit code 2."""


class LogDropped(CheckpointRefused):
    """The log no longer has the ledger that it would have to be read from."""


class NothingToBeginWith(CheckpointRefused):
    """A log without its beginning, and no checkpoint to go on from: what is `missing`, and why there is `no_base`, without advice."""

    def __init__(self, message: str, missing: str, no_base: str) -> None:
        super().__init__(message)
        self.missing = missing
        self.no_base = no_base


class BaseLockedAway(NothingToBeginWith):
    """There is a checkpoint to go on from, once somebody has done what `no_base` says: nothing else may take its place."""


class LsnNotInLog(LogDropped):
    """The ledger of an LSN that was asked for is not in the log: it was dropped, or never was."""


class KeyUnusable(CheckpointRefused):
    """What is encrypted can't be read, or written, with the keys that are there; names the file or Secret, the key and what to do."""


class CheckpointRetryable(RuntimeError):  # noqa: N818 - as above
    """Something that is needed is not there now. Exit code 3."""


class NotConfirmedYet(CheckpointRetryable):
    """An LSN is behind what bookies know to be confirmed."""


class InvariantViolated(RuntimeError):  # noqa: N818 - as above
    """The log, a follower or a written file contradicts another one. Exit code 42: never retry, look at it."""


class FollowerDiffers(InvariantViolated):
    """A follower has other rows than the fold of the log at the same LSN. `comparison` names it and the tables."""

    def __init__(self, message: str, comparison: FollowerComparison) -> None:
        super().__init__(message)
        self.comparison = comparison


class LeaderDiffers(InvariantViolated):
    """The leader has another number of rows than the fold of the log at the same LSN."""


class LogTruncatedError(RuntimeError):
    """The part of the log that a reader needs next was dropped: what changed there can't be learned from the log any more."""
