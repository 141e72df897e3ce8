"""The next step of draining one bookie, from its last ledger to its volumes (docs/decisions/0206).

Pure: observed facts go in, one step comes out. No progress is stored, so the operator may stop after any step. A drain can be cancelled
until the bookie's identity is removed. A ledger that is being written is never touched: with its next entry the writer leaves the read-only
bookie. What it left behind belongs to a later round. So does what autorecovery moves of it meanwhile: no metadata shows that it was here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from herdkeeper.bookkeeper.state.bookies import why_unread
from herdkeeper.codecs.bookkeeper.share import Share, record_of
from herdkeeper.planning.actions import Wait
from herdkeeper.shared.counted import counted
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper.shared.volumes import Claim

MOST_LEDGERS = 30_000
"""Ledgers in one round."""
MOST_RECORD_BYTES = 1_000_000
"""Bytes of a round's record, which must fit into a ConfigMap (1 MiB). A ledger of many segments takes more of them."""

_LATER = "cancel the drain (set the field as it was), and drain the bookie once the log has released ledgers"


class Mode(Enum):
    """How a bookie is registered."""

    WRITABLE = "writable"
    READ_ONLY = "read-only"
    GONE = "gone"  # in neither available/ nor available/readonly/


class JobState(Enum):
    ABSENT = "absent"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Round:
    """A record of what the bookie held, and the Job that moves it and reads it back. `why` is the error of its last failed attempt. `kept`:
    it is of an earlier drain that was cancelled before the Job succeeded. `waits`: why the Job's pod does not run, or not for long, as a
    sentence.
    """

    number: int
    job: JobState
    why: str = ""
    kept: bool = False
    waits: str = ""


@dataclass(frozen=True)
class DrainingBookie:
    """A draining bookie, observed completely."""

    number: int
    bookie_id: str
    mode: Mode
    marked: bool
    """Its claim says that the operator keeps it read-only."""
    answers: bool
    """Whether its pod is Ready."""
    pod_present: bool
    scaled_to_zero: bool
    """Scaled by the operator. A pod that is merely away comes back with its data."""
    shares: tuple[Share, ...]
    """What the bookie holds, by the ledgers' metadata."""
    rounds: tuple[Round, ...]
    cookie: bool
    retirement: JobState
    """The Job that removes the identity."""
    claims: tuple[Claim, ...]
    retirement_waits: str = ""
    """Why the pod of that Job does not run, or not for long, as a sentence."""
    unread: tuple[Share, ...] = ()
    """What earlier rounds recorded and left out (`unread_shares`). Autorecovery may have moved it."""
    own_writers: frozenset[str] = frozenset()
    """SQL nodes of databases in this namespace, which close a ledger on request."""

    @property
    def is_left_to_kubernetes(self) -> bool:
        """Whether only its claims are left, and all of them are being deleted."""
        return self.scaled_to_zero and not self.cookie and bool(self.claims) and all(claim.going for claim in self.claims)


@dataclass(frozen=True)
class ClusterState:
    """The rest of the cluster, observed completely."""

    writable: int
    """Writable bookies that stay."""
    largest_ensemble: int
    """The largest over all ledgers' metadata and the declared databases."""
    autorecovery: str | None
    """Why a lost entry would go unnoticed. None if autorecovery is on and an auditor is elected."""
    lacking: str | None = None
    """Why ledgers lack copies on bookies that stay: an auditor marked them, or their metadata shows it before."""
    too_few_racks: str | None = None
    """Why the racks of the remaining bookies violate the placement rule for new ledgers, or None."""
    also_leaving: tuple[str, ...] = ()
    """Other draining bookies that are still writable and so could receive copies."""


@dataclass(frozen=True)
class MarkDraining:
    """Record that the operator makes the bookie read-only, so that cancelling the drain makes it writable again."""

    sentence = "it is becoming read-only"


@dataclass(frozen=True)
class MakeReadOnly:
    """Make it read-only. Writers move to other bookies."""

    sentence = "it is becoming read-only"


@dataclass(frozen=True)
class Record:
    """Record what it holds: once moved, no metadata shows that it was here."""

    round: int
    shares: tuple[Share, ...]

    @property
    def sentence(self) -> str:
        return f"{counted(len(self.shares), 'ledger is', 'ledgers are')} to be moved"


@dataclass(frozen=True)
class Move:
    """Copy its ledgers elsewhere while it serves, then read every recorded entry from its new place."""

    round: int
    sentence = "its ledgers are being moved and read back"


@dataclass(frozen=True)
class CloseLedgers:
    """Make the writers close these ledgers and open the next. An idle database would otherwise keep a ledger, and its bookies, forever."""

    shares: tuple[Share, ...]

    @property
    def sentence(self) -> str:
        return f"waiting for the writers of its open ledgers to close them: {open_ledgers(self.shares)}"


@dataclass(frozen=True)
class Stop:
    """Scale its StatefulSet to zero, since nothing needs it."""

    sentence = "no ledger names it: it is stopping"


@dataclass(frozen=True)
class Restart:
    """Start it again, since ledgers still need it."""

    sentence = "ledgers need it again: it is being restarted"


@dataclass(frozen=True)
class RetireIdentity:
    """Remove its cookie by the shell's decommissionbookie. The HTTP call answers 200 and leaves it (4.18.0). This can't be undone."""

    sentence = "its identity is being removed from BookKeeper's metadata"


@dataclass(frozen=True)
class DeleteClaims:
    """Delete its volumes, by uid."""

    claims: tuple[Claim, ...]
    sentence = "its volumes are being deleted"


@dataclass(frozen=True)
class RemoveTraces:
    """Remove the remaining objects."""

    sentence = "it is drained"


Step = Wait | MarkDraining | MakeReadOnly | Record | Move | CloseLedgers | Stop | Restart | RetireIdentity | DeleteClaims | RemoveTraces
"""Each has a `sentence` for the status."""


def next_step(bookie: DrainingBookie | Unknown, state: ClusterState | Unknown) -> Step:
    if isinstance(bookie, Unknown):
        return Wait(why_unread(bookie), bookie.why)
    if isinstance(state, Unknown):
        return Wait(why_unread(state), state.why)
    if bookie.scaled_to_zero:
        return _when_stopped(bookie, state)
    if bookie.mode is Mode.GONE:
        return _when_away(bookie)
    return why_not_drain(bookie, state) or _when_registered(bookie, state)


def why_not_drain(bookie: DrainingBookie, state: ClusterState) -> Wait | None:
    if blocked := _why_unsafe(state):
        return blocked
    if state.writable <= state.largest_ensemble:
        return Wait(
            Reason.TOO_FEW_BOOKIES,
            f"{counted(state.writable, 'writable bookie')} would remain without {bookie.bookie_id}; ensembles of "
            f"{state.largest_ensemble} need one more, to replace a lost one: if no bookie is starting, raise spec.bookies until "
            f"{state.largest_ensemble + 1} stay",
        )
    return None if state.too_few_racks is None else Wait(Reason.TOO_FEW_RACKS, state.too_few_racks)


def later_steps(bookie: DrainingBookie) -> tuple[str, ...]:
    closed = [share for share in bookie.shares if share.closed]
    still_open = [share for share in bookie.shares if not share.closed]
    size = sum(share.payload_bytes for share in closed)
    closed_ones, open_ones = counted(len(closed), "closed ledger"), counted(len(still_open), "open ledger")
    move = f"copy {closed_ones} of {bookie.bookie_id} (about {size} bytes) to other bookies, and read the copies back"
    turn = f"copy {open_ones} of it, and read all back, once the writers have moved on: {open_ledgers(still_open)}"
    steps = (
        (f"make {bookie.bookie_id} read-only", bookie.mode is Mode.WRITABLE),
        (move, bool(closed)),
        (turn, bool(still_open)),
        (f"stop {bookie.bookie_id}", not bookie.scaled_to_zero),
        (f"remove the identity {bookie.bookie_id} from BookKeeper's metadata", bookie.cookie),
        (f"delete the volume claims {', '.join(claim.name for claim in bookie.claims)}", bool(bookie.claims)),
    )
    return tuple(step for step, wanted in steps if wanted)


def open_ledgers(shares: Sequence[Share]) -> str:
    """Returns the open ledgers, with the tablespaces that write them, as text."""
    shown = [
        f"{share.ledger_id}" + (f" (tablespace {share.tablespace})" if share.tablespace else "") for share in shares if not share.closed
    ]
    more = f" and {len(shown) - 10} more" if len(shown) > 10 else ""
    return ", ".join(shown[:10]) + more


def _why_unsafe(state: ClusterState) -> Wait | None:
    if state.autorecovery is not None:
        return Wait(Reason.AUTORECOVERY_OFF, f"{state.autorecovery}: nothing would notice a lost copy; the drain waits for autorecovery")
    if state.lacking is not None:
        return Wait(Reason.UNDER_REPLICATED, f"{state.lacking}; the drain continues once they are fully replicated")
    return None


def _when_registered(bookie: DrainingBookie, state: ClusterState) -> Step:
    if bookie.mode is Mode.WRITABLE:
        if not bookie.marked:
            return MarkDraining()
        return MakeReadOnly() if bookie.answers else Wait(Reason.BOOKIE_DOWN, f"{bookie.bookie_id} is registered, but its pod is not Ready")
    return _during_round(bookie, state) or _between_rounds(bookie, state)


def _during_round(bookie: DrainingBookie, state: ClusterState) -> Step | None:
    """Returns the step of the first round that has not succeeded, or None. What came to the bookie since is for the next round."""
    begun = next((begun for begun in bookie.rounds if begun.job is not JobState.DONE), None)
    if begun is None:
        return None
    match begun.job:
        case JobState.ABSENT:
            return _why_not_move(state) or Move(begun.number)
        case JobState.FAILED:
            return Wait(Reason.DRAIN_FAILED, f"ledgers of {bookie.bookie_id} could not be moved and read back: {begun.why}")
        case _:
            size = sum(share.payload_bytes for share in bookie.shares)
            retrying = f"; retrying: {begun.why}" if begun.why else ""
            waiting = f"; {begun.waits}" if begun.waits else ""
            left_there = f"{counted(len(bookie.shares), 'ledger is', 'ledgers are')} left on {bookie.bookie_id}, about {size} bytes"
            return Wait(Reason.MOVING_LEDGERS, f"{left_there}{retrying}{waiting}")


def _record(bookie: DrainingBookie) -> Record:
    shares = {share.ledger_id: share for share in bookie.shares}
    for left in bookie.unread:
        share = shares.get(left.ledger_id, left)
        shares[left.ledger_id] = replace(share, places=tuple(sorted({*share.places, *left.places})))
    return Record(max((begun.number for begun in bookie.rounds), default=0) + 1, tuple(shares[each] for each in sorted(shares)))


def _why_not_move(state: ClusterState) -> Wait | None:
    if state.also_leaving:
        return Wait(Reason.WAITING_FOR_OTHERS, f"{', '.join(state.also_leaving)} must become read-only first: copies would go there")
    return None


def _why_not_record(bookie: DrainingBookie) -> Wait | None:
    """Returns why a round can't record what the bookie holds, or None."""
    if len(bookie.shares) > MOST_LEDGERS:
        return Wait(
            Reason.DRAIN_FAILED,
            f"{bookie.bookie_id} holds {len(bookie.shares)} ledgers; this version drains at most {MOST_LEDGERS}: {_LATER}",
        )
    size = len(record_of(bookie.shares)) + sum(len(f"{share.ledger_id}\n") for share in bookie.shares if not share.closed)
    if size > MOST_RECORD_BYTES:
        return Wait(
            Reason.DRAIN_FAILED,
            f"the ledgers of {bookie.bookie_id} have too many segments: the drain's record of them would have {size} bytes, of "
            f"{MOST_RECORD_BYTES} that fit: {_LATER}",
        )
    return None


def _between_rounds(bookie: DrainingBookie, state: ClusterState) -> Step:
    """Start another round if something is left to move or to read. Stop the bookie once no ledger names it."""
    if blocked := _why_not_move(state) or _why_not_record(bookie):
        return blocked
    moved_by_others = {left.ledger_id for left in bookie.unread}.difference(share.ledger_id for share in bookie.shares)
    if moved_by_others or any(not share.written for share in bookie.shares):
        return _record(bookie)
    if idle := tuple(share for share in bookie.shares if share.tablespace is not None and share.writer in bookie.own_writers):
        return CloseLedgers(idle)
    if bookie.shares:
        return Wait(
            Reason.OPEN_LEDGERS,
            (
                f"open ledgers are on {bookie.bookie_id}: {open_ledgers(bookie.shares)}; they move once their writers write again or "
                "close them"
            ),
        )
    return Stop()


def _when_away(bookie: DrainingBookie) -> Step:
    """The operator did not stop it, so it must come back. Only one that never registered has neither cookie nor ledgers."""
    if not bookie.cookie and not bookie.shares and not bookie.unread:
        return Stop()
    alone = f" with {counted(len(bookie.shares), 'ledger')}" if bookie.shares else ""
    return Wait(Reason.BOOKIE_DOWN, f"{bookie.bookie_id} is down{alone}: the drain continues once it is back")


def _when_stopped(bookie: DrainingBookie, state: ClusterState) -> Step:
    """It was stopped by the operator: retire it if metadata still shows that nothing needs it."""
    if bookie.pod_present or bookie.mode is not Mode.GONE:
        return Wait(Reason.POD_STOPPING, f"{bookie.bookie_id} is stopping")
    unproven = any(begun.job is not JobState.DONE for begun in bookie.rounds)
    if bookie.shares or (unproven and bookie.cookie and bookie.retirement is JobState.ABSENT):
        return _when_stopped_too_early(bookie)
    if blocked := _why_unsafe(state):
        return blocked
    if unproven and (again := _during_round(bookie, state)) is not None:
        return again  # somebody deleted its Job, and the bookie can't come back: the entries are read where they are now
    if bookie.cookie:
        return _retire(bookie)
    return _delete_claims(bookie) if bookie.claims else RemoveTraces()


def _delete_claims(bookie: DrainingBookie) -> Step:
    if not bookie.is_left_to_kubernetes:
        return DeleteClaims(bookie.claims)
    going = f"claims of {bookie.bookie_id} are being deleted: {', '.join(claim.name for claim in bookie.claims)}"
    return Wait(Reason.DRAINED, f"{going}. If they stay, their finalizers name what keeps them")


def _when_stopped_too_early(bookie: DrainingBookie) -> Step:
    if bookie.cookie and bookie.retirement is JobState.ABSENT:
        return Restart()
    return Wait(
        Reason.DRAIN_FAILED,
        f"{counted(len(bookie.shares), 'ledger names', 'ledgers name')} {bookie.bookie_id} again, although its identity was removed: its "
        "volumes are kept",
    )


def _retire(bookie: DrainingBookie) -> Step:
    match bookie.retirement:
        case JobState.ABSENT:
            return RetireIdentity()
        case JobState.FAILED:
            return Wait(Reason.DRAIN_FAILED, f"the identity of {bookie.bookie_id} could not be removed: delete the failed Job to try again")
        case JobState.RUNNING | JobState.DONE:
            waiting = f"; {bookie.retirement_waits}" if bookie.retirement_waits else ""
            return Wait(Reason.RETIRING, f"the identity of {bookie.bookie_id} is being removed{waiting}")
