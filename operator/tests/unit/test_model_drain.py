"""A bookie that leaves takes no data along: in all that its drain, its Jobs, writers, crashes and stale readings can do together.

Within small bounds: bookie 0 leaves, three others stay, and each ledger has two copies. `make model` goes further.

The operator reads objects and who is registered, then the ledgers, then acts: anything can happen in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import pytest
from exploration import MORE_FAULTS, Explored, Explorer
from modelled_ledgers import Ledger, Segment, elsewhere

from herdkeeper.bookkeeper.drain import procedure as drain
from herdkeeper.bookkeeper.drain.procedure import ClusterState, DrainingBookie, JobState, Mode, Round
from herdkeeper.codecs.bookkeeper.share import Place, Share, unread_shares
from herdkeeper.planning.actions import Wait
from herdkeeper.shared.volumes import Claim

MOST_STATES = 60_000 if MORE_FAULTS == 0 else 400_000
LEAVES = 0
STAYING = (1, 2, 3)
ENSEMBLE = 2
CLAIMS = (Claim("bk-bookie-0-ledgers", "uid-1"),)


class Round_(NamedTuple):  # noqa: N801 - the plan's own Round has the name
    """The ledgers of the record; what became of the Job; whether it is of a drain that was taken back. The `written` ones are not read
    while they are open."""

    recorded: tuple[int, ...]
    job: JobState
    kept: bool = False
    written: frozenset[int] = frozenset()


class Begun(NamedTuple):
    """What was read first: how the leaving bookie is, without what it holds, and which others serve; or the ledgers."""

    leaving: DrainingBookie | None = None
    up: frozenset[int] = frozenset()
    ledgers: tuple[Ledger, ...] = ()


class Bookies(NamedTuple):
    """`pod`, `registered`: of the leaving one, whose session ends after its pod. `begun` is what the operator has read so far, `planned`
    what it is about to do. `up` are the staying ones that serve; a lost one never does again. `late`: a writer that has not heard that
    bookie 0 takes no ledgers any more may open one there while it is registered. `proven`: the ledgers that a Job has read back, also one
    of an earlier drain."""

    ledgers: tuple[Ledger, ...]
    up: frozenset[int] = frozenset(STAYING)
    lost: frozenset[int] = frozenset()
    pod: bool = True
    registered: bool = True
    read_only: bool = False
    marked: bool = False
    scaled_to_zero: bool = False
    cookie: bool = True
    retirement: JobState = JobState.ABSENT
    claims: bool = True
    traces: bool = True
    rounds: tuple[Round_, ...] = ()
    begun: Begun | None = None
    planned: drain.Step | None = None
    late: bool = False
    proven: frozenset[int] = frozenset()
    faults: int = 0
    mistake: str | None = None


Steps = Iterator[tuple[str, Bookies]]
START = Bookies(
    (
        Ledger((Segment(frozenset({0, 1}), frozenset({0, 1})),), open=False),
        Ledger((Segment(frozenset({0, 2}), frozenset({0, 2})),), open=True),
    )
)

CAME = Ledger((Segment(frozenset({0, 3}), frozenset({0, 3})),), open=False)
"""A ledger that came to the bookie while no drain was asked for."""


@dataclass(frozen=True)
class Scope:
    """Which faults can happen, by their names in FAULTS, and how many in a story. `step` decides; a test may give another one."""

    faults: frozenset[str]
    most_faults: int = 1
    step: Callable[[DrainingBookie, ClusterState], drain.Step] = drain.next_step
    late: bool = False
    reads_back: bool = True
    moves_recorded: bool = True
    ledgers_last: bool = True

    def explored(self, most_states: int = MOST_STATES) -> Explored:
        """All states that can be reached, up to a number."""
        start = START._replace(late=self.late, faults=self.most_faults + MORE_FAULTS)
        return Explorer[Bookies](self._steps, _wrong).explore(start, most_states)

    def stuck(self) -> Explored:
        """The first state from which the drain does not end, whatever happens."""
        start = START._replace(late=self.late, faults=self.most_faults)
        return Explorer[Bookies](self._steps, _wrong).stuck(start, lambda seen: not seen.traces, MOST_STATES)

    def _steps(self, seen: Bookies) -> Steps:
        yield from self._operator(seen)
        yield from self._jobs(seen)
        yield from _writers(seen)
        yield from _returns(seen)
        if seen.faults:
            for fault in sorted(self.faults):
                for told, after in FAULTS[fault](seen):
                    yield told, after._replace(faults=seen.faults - 1)

    def _operator(self, seen: Bookies) -> Steps:
        if not seen.traces:
            return
        if seen.planned is not None:
            yield f"the operator does what it planned: {type(seen.planned).__name__}", _done(seen, seen.planned)
        elif seen.begun is None:
            told, begun = "the ledgers' metadata", Begun(ledgers=seen.ledgers)
            if self.ledgers_last:
                told, begun = "objects and who is registered", Begun(_leaving(seen), seen.up)
            yield f"the operator reads {told}", seen._replace(begun=begun)
        else:
            begun = seen.begun
            leaving, up, ledgers = (_leaving(seen), seen.up, begun.ledgers) if begun.leaving is None else (*begun[:2], seen.ledgers)
            rest = _rest(up, ledgers)
            step = self.step(replace(leaving, shares=_shares(ledgers)), rest)
            planned, mistake = (None, None) if isinstance(step, Wait) else (step, _too_early(seen, step, rest) or _mistake(seen, step, up))
            told = f"the operator reads the rest, and plans {type(step).__name__}"
            yield told, seen._replace(begun=None, planned=planned, mistake=mistake)

    def _jobs(self, seen: Bookies) -> Steps:
        for number, begun in enumerate(seen.rounds):
            if begun.job is JobState.RUNNING:
                yield from _moved(seen, begun.recorded if self.moves_recorded else range(len(seen.ledgers)))
                read = (segment for each in begun.recorded for segment in seen.ledgers[each].read_back(LEAVES))
                whole = all(segment.bookies <= segment.copies & _serving(seen) for segment in read)
                named = any(seen.ledgers[each].can_leave(LEAVES) for each in begun.recorded)
                if not named and (whole or not self.reads_back):
                    after = _round(seen, number, JobState.DONE)._replace(proven=seen.proven.union(begun.recorded))
                    yield f"the Job of round {number + 1} has read everything back", after
        if seen.retirement is JobState.RUNNING and not seen.registered and not any(ledger.names(LEAVES) for ledger in seen.ledgers):
            yield "the Job removes the identity", seen._replace(retirement=JobState.DONE, cookie=False)


def _serving(seen: Bookies) -> frozenset[int]:
    return seen.up | {LEAVES} if seen.pod else seen.up


def _leaving(seen: Bookies) -> DrainingBookie:
    mode = Mode.GONE if not seen.registered else Mode.READ_ONLY if seen.read_only else Mode.WRITABLE
    return DrainingBookie(
        number=LEAVES,
        bookie_id="bk-0",
        mode=mode,
        marked=seen.marked,
        answers=seen.pod,
        pod_present=seen.pod,
        scaled_to_zero=seen.scaled_to_zero,
        shares=(),
        rounds=tuple(Round(number, begun.job, kept=begun.kept) for number, begun in enumerate(seen.rounds, 1)),
        cookie=seen.cookie,
        retirement=seen.retirement,
        claims=CLAIMS if seen.claims else (),
        unread=unread_shares(("".join(f"{each} 0:0\n" for each in begun.recorded), begun.written) for begun in seen.rounds),
    )


def _shares(ledgers: tuple[Ledger, ...]) -> tuple[Share, ...]:
    return tuple(
        Share(number, (Place(0, 0),), not ledger.open, ledger.is_written_on(LEAVES))
        for number, ledger in enumerate(ledgers)
        if ledger.names(LEAVES)
    )


def _rest(up: frozenset[int], ledgers: tuple[Ledger, ...]) -> ClusterState:
    named = {bookie for ledger in ledgers for segment in ledger.segments for bookie in segment.bookies} - {LEAVES}
    away = named - up
    return ClusterState(
        writable=len(up),
        largest_ensemble=ENSEMBLE,
        autorecovery=None,
        lacking=f"ledgers name {sorted(away)}" if away else None,  # the auditor says so late, or never
    )


def _done(seen: Bookies, step: drain.Step) -> Bookies:  # noqa: PLR0911 - one line a step
    left = seen._replace(planned=None)
    match step:
        case drain.MarkDraining():
            return left._replace(marked=True)
        case drain.MakeReadOnly():
            return left._replace(read_only=True) if seen.pod else left
        case drain.Record(_, shares):
            recorded = tuple(share.ledger_id for share in shares)
            written = frozenset(share.ledger_id for share in shares if share.written)
            return left._replace(rounds=(*seen.rounds, Round_(recorded, JobState.ABSENT, written=written)))
        case drain.Move(number) if number <= len(seen.rounds):
            return _round(left, number - 1, JobState.RUNNING)
        case drain.Stop():
            return left._replace(scaled_to_zero=True)
        case drain.Restart():
            return left._replace(scaled_to_zero=False)
        case drain.RetireIdentity():
            return left._replace(retirement=JobState.RUNNING)
        case drain.DeleteClaims():
            return left._replace(claims=False)
        case drain.RemoveTraces():
            return left._replace(traces=False)
        case _:
            return left


def _round(seen: Bookies, number: int, job: JobState) -> Bookies:
    return seen._replace(rounds=(*seen.rounds[:number], seen.rounds[number]._replace(job=job), *seen.rounds[number + 1 :]))


def _with_ledger(seen: Bookies, number: int, ledger: Ledger) -> Bookies:
    return seen._replace(ledgers=(*seen.ledgers[:number], ledger, *seen.ledgers[number + 1 :]))


def _moved(seen: Bookies, candidates: Sequence[int]) -> Steps:
    for number in (each for each in candidates if seen.ledgers[each].can_leave(LEAVES)):
        ledger = seen.ledgers[number]
        for place, segment in enumerate(ledger.segments):
            moved = elsewhere(segment, LEAVES, seen.up, _serving(seen)) if LEAVES in segment.bookies else None
            if moved is not None:
                yield f"the Job moves ledger {number}", _with_ledger(seen, number, ledger.having(place, moved))


def _writers(seen: Bookies) -> Steps:
    writable = seen.registered and seen.pod and not seen.read_only
    for number, ledger in enumerate(seen.ledgers):
        last = ledger.segments[-1]
        if ledger.is_written_on(LEAVES) and not writable and (free := sorted(seen.up - last.bookies)):
            bookies = last.bookies - {LEAVES} | {free[0]}
            turned = ledger._replace(segments=(*ledger.segments, Segment(bookies, bookies)))
            yield f"the writer of ledger {number} turns away from bookie 0", _with_ledger(seen, number, turned)
        if ledger.open and LEAVES not in last.bookies:
            yield f"ledger {number} is closed", _with_ledger(seen, number, ledger._replace(open=False))
    if seen.late and seen.registered:
        bookies = frozenset({0, 3})
        # of a ledger without an entry none is missing anywhere
        segment = Segment(bookies, bookies if writable else frozenset({0, *STAYING}))
        told = "a writer that has not heard of it opens a ledger on bookie 0"
        yield told, seen._replace(late=False, ledgers=(*seen.ledgers, Ledger((segment,), open=True)))


def _returns(seen: Bookies) -> Steps:
    """What happens by itself: pods come and go as they are declared, sessions end, autorecovery heals."""
    if seen.pod and seen.scaled_to_zero:
        yield "the pod of bookie 0 ends", seen._replace(pod=False)
    if not seen.pod and seen.registered:
        yield "the session of bookie 0 ends", seen._replace(registered=False)
    if not seen.pod and not seen.scaled_to_zero and seen.cookie and seen.claims and not seen.registered:
        yield "bookie 0 starts again, and is writable", seen._replace(pod=True, registered=True, read_only=False)
    for bookie in sorted(set(STAYING) - seen.up - seen.lost):
        yield f"bookie {bookie} is back", seen._replace(up=seen.up | {bookie})
    for bookie in sorted(seen.lost):
        for number, ledger in enumerate(seen.ledgers):
            for place, segment in enumerate(ledger.segments):
                healed = elsewhere(segment, bookie, seen.up, _serving(seen)) if bookie in segment.bookies else None
                if healed is not None:
                    after = _with_ledger(seen, number, ledger.having(place, healed))
                    yield f"autorecovery copies ledger {number} away from the lost bookie {bookie}", after


def _operator_crash(seen: Bookies) -> Steps:
    if seen.begun is not None or seen.planned is not None:
        yield "the operator crashes", seen._replace(begun=None, planned=None)


def _restart(seen: Bookies) -> Steps:
    if seen.pod and seen.read_only:
        yield "bookie 0 is restarted, and writable", seen._replace(read_only=False)


def _bookie_crash(seen: Bookies) -> Steps:
    if seen.pod:
        yield "bookie 0 crashes", seen._replace(pod=False)
    for bookie in sorted(seen.up):
        yield f"bookie {bookie} crashes", seen._replace(up=seen.up - {bookie})


def _disk_lost(seen: Bookies) -> Steps:
    for bookie in sorted(set(STAYING) - seen.lost):
        ledgers = tuple(
            ledger._replace(segments=tuple(segment._replace(copies=segment.copies - {bookie}) for segment in ledger.segments))
            for ledger in seen.ledgers
        )
        yield f"the disk of bookie {bookie} is lost", seen._replace(up=seen.up - {bookie}, lost=seen.lost | {bookie}, ledgers=ledgers)


def _copy_lost(seen: Bookies) -> Steps:
    """A copy that was just made is none: what the Job reads back must tell."""
    running = {number for begun in seen.rounds if begun.job is JobState.RUNNING for number in (*begun.recorded, len(START.ledgers))}
    for number, (ledger, first) in enumerate(zip(seen.ledgers, (*START.ledgers, CAME), strict=False)):
        made = ledger.segments[0].copies - first.segments[0].copies
        if number in running - seen.proven and made:
            lacking = ledger.segments[0]._replace(copies=ledger.segments[0].copies - made)
            after = _with_ledger(seen, number, ledger._replace(segments=(lacking, *ledger.segments[1:])))
            yield f"the new copy of ledger {number} can't be read", after


def _autorecovery_errs(seen: Bookies) -> Steps:
    """It does not see bookie 0 for a while. It closes a ledger that this one has in a record, and takes another one's copy for good."""
    for number in sorted({number for begun in seen.rounds for number in begun.recorded}):
        ledger = seen.ledgers[number]
        free = sorted(seen.up - ledger.segments[-1].bookies)
        if ledger.is_written_on(LEAVES) and free:
            moved = ledger.segments[-1]._replace(bookies=ledger.segments[-1].bookies - {LEAVES} | {free[0]})
            told = f"autorecovery closes ledger {number}, and takes a copy for good that is none"
            yield told, _with_ledger(seen, number, Ledger((*ledger.segments[:-1], moved), open=False))


def _job_gone(seen: Bookies) -> Steps:
    for number, begun in enumerate(seen.rounds):
        if begun.job is not JobState.ABSENT:
            yield f"somebody deletes the Job of round {number + 1}", _round(seen, number, JobState.ABSENT)
    if seen.retirement is JobState.RUNNING:
        yield "somebody deletes the Job that removes the identity", seen._replace(retirement=JobState.ABSENT)


def _record_gone(seen: Bookies) -> Steps:
    if seen.rounds:
        yield "somebody deletes the record of the last round", seen._replace(rounds=seen.rounds[:-1])


def _taken_back(seen: Bookies) -> Steps:
    """And asked for again. What was moved and not read back is read back then; open ledgers are for the next round."""
    unproven = (begun for begun in seen.rounds if begun.job is not JobState.DONE)
    closed = frozenset(number for number, ledger in enumerate(seen.ledgers) if not ledger.open)
    kept = (begun._replace(job=JobState.ABSENT, kept=True, written=begun.written.union(begun.recorded) - closed) for begun in unproven)
    yield from _writable_again(seen, tuple(kept))


def _taken_back_without_records(seen: Bookies) -> Steps:
    yield from _writable_again(seen, ())


def _writable_again(seen: Bookies, rounds: tuple[Round_, ...]) -> Steps:
    if seen.marked and seen.cookie and seen.retirement is JobState.ABSENT:
        fresh = seen._replace(marked=False, read_only=False, scaled_to_zero=False, rounds=rounds, begun=None, planned=None)
        yield "the drain is taken back, and asked for again", fresh
        if seen.pod and len(seen.ledgers) == len(START.ledgers):
            yield "the drain is taken back, a ledger comes, and it is asked for again", fresh._replace(ledgers=(*seen.ledgers, CAME))


FAULTS: Mapping[str, Callable[[Bookies], Steps]] = {
    "operator crash": _operator_crash,
    "bookie crash": _bookie_crash,
    "restart": _restart,
    "disk lost": _disk_lost,
    "copy lost": _copy_lost,
    "autorecovery errs": _autorecovery_errs,
    "job gone": _job_gone,
    "record gone": _record_gone,
    "taken back": _taken_back,
    "taken back without records": _taken_back_without_records,
}


def _too_early(seen: Bookies, step: drain.Step, rest: ClusterState) -> str | None:
    """A bookie is to be made read-only or stopped only while the others have a copy of everything, and one of them to spare."""
    if isinstance(step, drain.MarkDraining | drain.MakeReadOnly | drain.Record | drain.Stop):
        if rest.writable <= ENSEMBLE:
            return f"{type(step).__name__}, and of the others only {rest.writable} serve"
        if rest.lacking is not None:
            return f"{type(step).__name__}, and {rest.lacking}"
    if isinstance(step, drain.MakeReadOnly) and not seen.marked:
        return "bookie 0 is to be made read-only, and nothing tells that the operator did it"
    return None


def _mistake(seen: Bookies, step: drain.Step, served: frozenset[int]) -> str | None:
    """The identity and the volumes go only while all that the bookie had has two copies without it. What is lost of `served`, which were
    read a moment ago, nobody can know yet."""
    if not isinstance(step, drain.RetireIdentity | drain.DeleteClaims):
        return None
    for number, ledger in enumerate(seen.ledgers):
        copies = min(len((segment.copies | (seen.lost & served & segment.bookies)) - {LEAVES}) for segment in ledger.segments)
        if copies < 2:
            return f"bookie 0 is to be removed, and ledger {number} has less than two copies elsewhere"
    return None


def _needs(segment: Segment) -> bool:
    return LEAVES in segment.bookies and not segment.copies.issuperset(STAYING)


def _wrong(seen: Bookies) -> str | None:
    if seen.mistake is not None or seen.claims:
        return seen.mistake
    named = [number for number, ledger in enumerate(seen.ledgers) if any(_needs(segment) for segment in ledger.segments)]
    return f"the volumes of bookie 0 are deleted, and ledger {named[0]} names it" if named else None


def _blind_once_stopped(bookie: DrainingBookie, rest: ClusterState) -> drain.Step:
    """A drain that does not look at the ledgers again once the bookie has stopped."""
    return drain.next_step(replace(bookie, shares=()) if bookie.scaled_to_zero else bookie, rest)


def _forgetful(bookie: DrainingBookie, rest: ClusterState) -> drain.Step:
    """A drain that does not know what earlier rounds left unread."""
    return drain.next_step(replace(bookie, unread=()), rest)


def _deaf_to_others(bookie: DrainingBookie, rest: ClusterState) -> drain.Step:
    """A drain that does not ask how the bookies are that stay."""
    return drain.next_step(bookie, replace(rest, lacking=None))


SCOPES = {
    "crashes": Scope(frozenset({"operator crash", "bookie crash"})),
    "disks that are lost": Scope(frozenset({"disk lost"})),
    "copies that are none": Scope(frozenset({"copy lost"})),
    "ledgers that autorecovery moves meanwhile": Scope(frozenset({"autorecovery errs", "restart"})),
    "Jobs and records that are deleted": Scope(frozenset({"job gone", "record gone"})),
    "drains that are taken back": Scope(frozenset({"taken back", "copy lost"}), most_faults=2),
    "writers that hear late": Scope(frozenset({"restart"}), late=True),
}


@pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)
def test_whatever_happens_in_whichever_order_a_bookie_takes_no_data_along(scope: Scope) -> None:
    scope.explored().require_right()


ENDS = ("crashes", "Jobs and records that are deleted", "writers that hear late")
"""With a lost disk there are too few bookies; what can't be read, or nobody moves, waits for a person."""


@pytest.mark.parametrize("scope", [SCOPES[name] for name in ENDS], ids=ENDS)
def test_whatever_happened_a_drain_can_come_to_its_end(scope: Scope) -> None:
    scope.stuck().require_right()


@pytest.mark.parametrize(
    ("without", "wrong"),
    [
        (replace(SCOPES["writers that hear late"], step=_blind_once_stopped), "less than two copies"),
        (replace(SCOPES["writers that hear late"], ledgers_last=False), "less than two copies"),
        (replace(SCOPES["disks that are lost"], step=_deaf_to_others), "less than two copies"),
        (replace(SCOPES["copies that are none"], reads_back=False), "less than two copies"),
        (replace(SCOPES["ledgers that autorecovery moves meanwhile"], step=_forgetful), "less than two copies"),
        (Scope(frozenset({"taken back without records", "copy lost"}), most_faults=2), "less than two copies"),
        (replace(SCOPES["drains that are taken back"], moves_recorded=False), "less than two copies"),
    ],
    ids=[
        "looking again once it has stopped",
        "reading the ledgers after who is registered",
        "asking how the others are",
        "reading back what was moved",
        "reading back what autorecovery moved between two rounds",
        "keeping the record of what was not read back when the drain is taken back",
        "moving only what is recorded",
    ],
)
def test_without_one_of_its_rules_a_story_is_found_in_which_data_goes(without: Scope, wrong: str) -> None:
    without.explored().require_wrong(wrong)
