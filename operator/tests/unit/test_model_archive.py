"""Invariants 8 and 9: every moment of the recovery window can be restored, though the log, parts of its archive and old Checkpoints go.

All orders, within small bounds: a Tablespace and a schedule of Checkpoints are reconciled, the archiver copies and deletes, the leader
releases the log, Checkpoints end, something fails. `make model` goes further.

A row is written each day, in a ledger of its own; everything counts in days, which are LSNs, too. The leader releases a ledger at once
where no pin keeps it: every retention is over. A Checkpoint that a person deletes is missed by that person alone.

Of a look at a schedule no more than a night passes before its deletions are done, and no person deletes a Checkpoint in between. A deleted
Checkpoint and its files go at once. The archiver reads the order and reports what goes in one step.

Not in it: what the jobs write and compare (spark-jobs/tests), replicas and their disks (test_model_leadership.py), streams, restores,
drills, Checkpoints that share a manifest (test_plan_checkpoint_removal.py), a destination or a tablespace that becomes another one.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import NamedTuple

import pytest
from exploration import MORE_FAULTS, Explored, Explorer
from situations import with_metadata, with_spec, with_status
from test_plan_archive import CLAIM, FORGETFUL
from test_plan_log_pin import INSTANCE, SEEN, UUID, checkpoint
from test_plan_schedule import example

from herdkeeper.api import Checkpoint, Tablespace
from herdkeeper.api.checkpoint import Lsn
from herdkeeper.api.job import Destination
from herdkeeper.api.scheduled_checkpoint import Retention
from herdkeeper.api.tablespace import ArchiveRetention, LogArchive, TablespaceLog
from herdkeeper.herddb.log import archive_expiry, checkpoint_base, plan_pins, status_archive
from herdkeeper.herddb.log.archive_expiry import expiry_steps, needed_by_archive
from herdkeeper.herddb.log.plan_pins import log_pin_steps
from herdkeeper.herddb.log.seen import ArchiveObserved, LogPin, SeenOrder
from herdkeeper.herddb.log.status_archive import archive_fields
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.jobs.drill import state as series
from herdkeeper.jobs.drill.state import CheckpointSeries, DrillObserved
from herdkeeper.jobs.schedule import plan as schedules
from herdkeeper.jobs.schedule.plan import plan_schedule
from herdkeeper.jobs.schedule.state import run_of
from herdkeeper.planning.actions import Delete, SetArchiveExpiry
from herdkeeper.protocol.log_archive import ArchivedRange, ArchiveProgress, ExpiryOrder
from herdkeeper.protocol.log_pin import ARCHIVE, BEGIN, CHECKPOINT, SECOND_DISK
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.timetable import duration_of
from herdkeeper.shared.unknown import Unknown

MOST_STATES = 30_000 if MORE_FAULTS == 0 else 200_000
NOON = datetime.datetime(2026, 5, 10, 12, tzinfo=datetime.UTC)
ELSEWHERE = "elsewhere"
SILENCE = Unknown("silence")
PINS = (CHECKPOINT, ARCHIVE, SECOND_DISK)
AHEAD = 3
"""Days by which a wrong clock is wrong."""


class Made(NamedTuple):
    """A Checkpoint of all rows up to day `at`; the next one reads the log again from day `restart`. `ended`: when, by the operator's clock.
    `proven`: a follower had the same rows. `missed`: a person deleted it, with its files."""

    at: int
    restart: int
    ended: int
    proven: bool = True
    missed: bool = False


class Stored(NamedTuple):
    """The Tablespace's status: the window's ends, and the time up to which the log is archived. `told`: it says something of the
    archive."""

    told: bool = False
    begin: int | None = None
    end: int | None = None
    until: int | None = None


class Segments(NamedTuple):
    """From one day to another."""

    first: int
    last: int


class Look(NamedTuple):
    """What a reconcile of the Tablespace reads. `silent`: ZooKeeper does not answer. `unread`: a Checkpoint can't be read."""

    stored: Stored
    reported: Segments | None
    order: tuple[int, int] | None
    pins: tuple[int | None, ...]
    stamps: tuple[int, ...]
    now: int
    checkpoints: tuple[Made, ...] = ()
    silent: bool = False
    unread: bool = False


class Order(NamedTuple):
    """What the operator decided: pins, what may expire, or the status."""

    what: str
    to: object


class World(NamedTuple):
    """`stamps` are those of the days' rows, `released` the first day that is left in the log, `pins` are as in PINS. `order`: the day from
    which the archive is kept, and its base. `going`: the archiver deletes what is before that day. `begun` is what a reconcile of the
    Tablespace read before the Checkpoints, `planned` what it has not done yet. `expired` is what one of the schedule has not deleted yet;
    `overnight`: since yesterday.

    `believed`: a person deleted no Checkpoint since the look from which the status is."""

    stamps: tuple[int, ...]
    pins: tuple[int | None, ...]
    released: int = 0
    checkpoints: tuple[Made, ...] = ()
    segments: Segments | None = None
    reported: Segments | None = None
    order: tuple[int, int] | None = None
    going: int | None = None
    stored: Stored = Stored()
    begun: Look | None = None
    planned: tuple[Order, ...] = ()
    expired: tuple[int, ...] = ()
    overnight: bool = False
    believed: bool = True
    doubted: bool = False
    clock: int = 0
    faults: int = 0
    mistake: str | None = None

    @property
    def today(self) -> int:
        return len(self.stamps) - 1

    def has(self, day: int) -> bool:
        """Whether the log or the archive has the row of a day."""
        archived = self.segments is not None and self.segments.first <= day <= self.segments.last
        return archived or self.released <= day <= self.today

    def restores(self, day: int, *, also_missed: bool) -> bool:
        """Whether the rows up to a day can be had. `also_missed`: with the Checkpoints that a person deleted."""
        usable = (each for each in self.checkpoints if each.proven and (also_missed or not each.missed) and each.at <= day)
        starts = (each.at + 1 if each.restart == each.at else each.restart for each in usable)
        return any(all(self.has(each) for each in range(start, day + 1)) for start in (0, *starts))

    def tomorrow(self, stamp: int) -> World:
        return self._replace(stamps=(*self.stamps, stamp), overnight=bool(self.expired))

    def without(self, at: int) -> World:
        return self._replace(checkpoints=tuple(each for each in self.checkpoints if each.at != at))

    @property
    def there(self) -> tuple[Made, ...]:
        return tuple(each for each in self.checkpoints if not each.missed)


Steps = Iterator[tuple[str, World]]


def moment(day: int) -> datetime.datetime:
    return NOON + datetime.timedelta(days=day)


def text(day: int) -> str:
    return moment(day).isoformat()


def day_of(stamp: str | None) -> int | None:
    return None if stamp is None else (datetime.datetime.fromisoformat(stamp) - NOON).days


@cache
def resource(made: Made, latest: int, place: str) -> Checkpoint:
    """As the API server has it."""
    found = checkpoint(
        f"c{made.at}",
        (made.at, 0),
        restart_lsn=Lsn(ledger_id=made.restart, entry_id=0),
        verified="compared with follower x" if made.proven else "files re-read",
        lsn_timestamp=text(latest),
        latest_timestamp=text(latest),
        completed_at=text(made.ended),
    )
    destination = Destination.model_validate({"persistentVolumeClaim": {"claimName": place}})
    return with_metadata(with_spec(found, destination=destination), uid=f"uid-{made.at}", creation_timestamp=text(made.at))


@dataclass(frozen=True)
class Scope:
    """`days` are all that pass, the first `begins` of them without a fault. `within`: the days of the window, None for an archive that
    expires nothing; `archived` is False without an archive. `keeps`: the log is kept until a Checkpoint. `keep_last`: of the schedule.
    Which faults there are, by their names in FAULTS. `elsewhere`: Checkpoints are at another destination than the archive. `late`:
    anything can happen between what a reconcile of the Tablespace reads first and the Checkpoints. `transactions`: one is open whenever
    a Checkpoint ends. `older`: what the status promises counts also for days before the window: not where a look that could not read
    something falls back to what a schedule is about to delete."""

    begins: int = 0
    days: int = 3
    within: int | None = 1
    archived: bool = True
    keeps: bool = False
    keep_last: int = 1
    faults: tuple[str, ...] = ()
    most_faults: int = 1
    elsewhere: bool = False
    late: bool = False
    transactions: bool = False
    older: bool = True

    def explored(self) -> Explored:
        pins = (BEGIN[0] if self.keeps else None, BEGIN[0] if self.archived else None, BEGIN[0])
        world, at_once = World((0,), pins), replace(self, late=False)
        for _ in range(self.begins):
            made = ended(self, world)
            world = made._replace(stamps=(*made.stamps, made.today + 1))
            while step := next(chain(at_once._tablespace(world), self._archiver(world)), None):
                world = _released(step[1])
        start = world._replace(faults=self.most_faults + MORE_FAULTS if self.faults else 0)
        return Explorer[World](self._steps, self._wrong).explore(start, MOST_STATES)

    def _steps(self, world: World) -> Steps:
        for told, after in self._all_steps(world):
            yield told, _released(after)

    def _all_steps(self, world: World) -> Steps:
        yield from self._tablespace(world)
        yield from self._schedule(world)
        yield from self._archiver(world)
        yield from self._checkpoints(world)
        if world.today < self.days and not world.overnight:
            yield "a day passes, and a row is written", world.tomorrow(world.today + 1)
        if world.planned or world.expired or world.begun is not None:
            yield "the operator crashes", world._replace(planned=(), expired=(), begun=None, overnight=False)
        if world.faults:
            for fault in self.faults:
                for told, after in FAULTS[fault](self, world):
                    yield told, after._replace(faults=world.faults - 1)

    def _tablespace(self, world: World) -> Steps:
        if world.planned:
            yield _done(world)
        elif self.late and world.begun is None:
            yield "the Tablespace is looked at, but for its Checkpoints", world._replace(begun=self._look(world), doubted=False)
        else:
            begun = world.begun or self._look(world)
            yield from self.looked(world._replace(begun=None, doubted=world.doubted and self.late), begun)

    def _look(self, world: World) -> Look:
        return Look(world.stored, world.reported, world.order, world.pins, world.stamps, world.today + world.clock)

    def looked(self, world: World, look: Look) -> Steps:
        """The rest of a reconcile's look."""
        orders = planned(self, look._replace(checkpoints=world.there))
        if orders or not world.believed:
            believed = not world.doubted if not orders else world.believed
            told = f"the Tablespace is looked at: {[order.what for order in orders]}"
            yield told, world._replace(planned=orders, believed=believed)
        elif self.late:
            yield "the Tablespace is looked at", world

    def _schedule(self, world: World) -> Steps:
        if world.expired:
            at, *left = world.expired
            yield (
                f"the schedule deletes Checkpoint {at}",
                world.without(at)._replace(expired=tuple(left), overnight=world.overnight and bool(left)),
            )
        elif expired := expiring(self, world.stored, world.there, world.stamps, world.today + world.clock):
            yield f"the schedule is looked at: Checkpoints {list(expired)} have expired", world._replace(expired=expired)

    def _archiver(self, world: World) -> Steps:
        held, order = world.segments, world.order
        if not self.archived:
            return
        if world.going is not None:
            assert held is not None
            left = Segments(world.going, held.last)
            yield f"the archiver deletes what is before {world.going}", world._replace(segments=left, reported=left, going=None)
            return
        if held is None or held.last < world.today or world.reported != held:
            first = world.released if held is None else held.first
            gap = held is not None and world.released > held.last + 1
            mistake = "the log was released that the archive lacks" if gap else None
            now = Segments(first, world.today)
            yield f"the log is archived up to {world.today}", world._replace(segments=now, reported=now, mistake=mistake)
        if held is not None and order is not None and held.first < order[0] <= held.last and self._base_is_there(world, order[1]):
            told = f"the archiver reports that what is before {order[0]} goes"
            yield told, world._replace(going=order[0], reported=Segments(order[0], held.last))

    def _base_is_there(self, world: World, base: int) -> bool:
        return self.elsewhere or any(each.at == base for each in world.there)

    def _checkpoints(self, world: World) -> Steps:
        if all(each.at < world.today for each in world.checkpoints):
            yield f"Checkpoint {world.today} ends", ended(self, world)

    def _wrong(self, world: World) -> str | None:
        if world.mistake is not None:
            return world.mistake
        for day in self._needed(world):
            if not world.restores(day, also_missed=True):
                return f"the rows up to day {day} can't be had any more"
        begin, end = world.stored.begin, world.stored.end
        if world.believed and begin is not None and end is not None:
            needed = frozenset(self._needed(world))
            for day in range(begin, end + 1):
                if (self.older or day in needed) and not world.restores(day, also_missed=False):
                    return f"the status promises day {day}, and it can't be had"
        return None

    def _needed(self, world: World) -> Iterator[int]:
        """The days for which nobody allowed that they go: the window, and the end of the log."""
        yield world.today
        if self.archived:
            start = None
            if self.within is not None and world.segments is not None:
                start = min(world.today, max(world.stamps[: world.segments.last + 1])) - self.within
            # also the last day before the window: its rows are those of the window's first moments
            yield from (day for day in range(world.today) if start is None or max(world.stamps[: day + 2]) > start)


def ended(scope: Scope, world: World, *, proven: bool = True) -> World:
    at = world.today
    made = Made(at, max(0, at - 1) if scope.transactions else at, at + world.clock, proven)
    return world._replace(checkpoints=(*world.checkpoints, made))


def _released(world: World) -> World:
    """The leader releases ledgers that have ended, and that no pin keeps."""
    kept = min((pin for pin in world.pins if pin is not None), default=world.today)
    return world._replace(released=max(world.released, min(kept, world.today)))


def _done(world: World) -> tuple[str, World]:
    order, left = world.planned[0], world._replace(planned=world.planned[1:])
    match order:
        case Order("the status", Stored() as stored):
            return "the Tablespace's status is written", left._replace(stored=stored, believed=not world.doubted, doubted=False)
        case Order("what may expire", to):
            return f"the archiver may delete what is before {to}", left._replace(order=to)  # type: ignore[arg-type]
        case Order(_, tuple(pins)):
            return f"the pins move to {pins}", left._replace(pins=pins)
    raise AssertionError(f"{order} is not modelled")


@cache
def declared(scope: Scope, stored: Stored) -> Tablespace:
    retention = None if scope.within is None else ArchiveRetention(keep_within=f"{scope.within}d")
    archive = LogArchive(destination=CLAIM, every_seconds=30, retention=retention) if scope.archived else None
    tablespace = with_spec(FORGETFUL, log=TablespaceLog(keep_until_checkpoint=scope.keeps, archive=archive))
    if not stored.told:
        return tablespace
    lsns = {"fromLsn": stored.begin, "toLsn": stored.end}
    window = {name: {"ledgerId": day, "entryId": 0} for name, day in lsns.items() if day is not None}
    until = {} if stored.until is None else {"lsnTimestamp": text(stored.until)}
    return with_status(tablespace, uuid=UUID, archive={"claimName": "archives", **until}, recovery_window=window or None)


@cache
def planned(scope: Scope, look: Look) -> tuple[Order, ...]:
    """By the operator's own rules: pins first, then what may expire, and the status at the end."""
    tablespace = declared(scope, look.stored)
    pins = [SILENCE if look.silent else None if day is None else LogPin((day, BEGIN[1] if day < 0 else 0), 0) for day in look.pins]
    place = "archives"
    order = None if look.order is None else SeenOrder(ExpiryOrder(place, (look.order[0], 0), manifest_of(scope, look.order[1])), 0)
    unread = Unknown("a Checkpoint can't be read") if look.unread else None
    archive = ArchiveObserved(
        SILENCE if look.silent else ArchiveProgress(place, held_of(look), 0, 0.0) if look.reported is not None else None,
        pins[1],
        now=moment(look.now).timestamp(),
        order=SILENCE if look.silent else order,
        unread=unread,
    )
    seen = replace(
        SEEN,
        tablespace=tablespace,
        checkpoints=resources(scope, look.checkpoints, look.stamps),
        log_pin=pins[0],
        disk_pin=pins[2],
        archive=archive,
        now=moment(look.now),
    )
    moved = {step.path.rsplit("/", 1)[1]: None if step.lsn is None else step.lsn[0] for step in log_pin_steps(seen, UUID)}
    after = tuple(moved.get(name, day) for name, day in zip(PINS, look.pins, strict=True))
    stored = _stored(archive_fields(seen, UUID))
    return (
        *((Order("pins", after),) if moved else ()),
        *(Order("what may expire", _expiry(step)) for step in expiry_steps(seen, UUID)),
        *((Order("the status", stored),) if stored != look.stored else ()),
    )


def manifest_of(scope: Scope, at: int) -> str:
    return "" if scope.elsewhere else checkpoint("", (at, 0)).manifest or ""


def held_of(look: Look) -> ArchivedRange | None:
    if look.reported is None:
        return None
    (first, last), stamps = look.reported, look.stamps
    millis = [int(moment(day).timestamp() * 1000) for day in (stamps[first], max(stamps[first : last + 1]))]
    resume = (last + 1, 0) if last + 1 < len(stamps) else (last, 1)
    return ArchivedRange((first, 0), millis[0], first == 0, (last, 0), millis[1], resume)


def resources(scope: Scope, found: tuple[Made, ...], stamps: tuple[int, ...]) -> tuple[Checkpoint, ...]:
    place = ELSEWHERE if scope.elsewhere else "archives"
    return tuple(resource(each, max(stamps[: each.at + 1]), place) for each in found)


def _expiry(step: SetArchiveExpiry) -> tuple[int, int] | None:
    return None if step.order is None else (step.order.keep_from[0], int(step.why.split()[2].removeprefix("c")))


def _stored(fields: Mapping[str, dict[str, object]]) -> Stored:
    window, archive = fields.get("recoveryWindow") or {}, fields.get("archive")
    begin, end = (window[name]["ledgerId"] if name in window else None for name in ("fromLsn", "toLsn"))  # type: ignore[index]
    return Stored(archive is not None, begin, end, day_of((archive or {}).get("lsnTimestamp")))  # type: ignore[arg-type]


@cache
def expiring(scope: Scope, stored: Stored, found: tuple[Made, ...], stamps: tuple[int, ...], now: int) -> tuple[int, ...]:
    """What the schedule deletes, by its own plan."""
    schedule = with_spec(SCHEDULE, retention=Retention(keep_last=scope.keep_last))
    made = resources(scope, found, stamps)
    observed = CheckpointSeries(
        schedule,
        tuple(run_of(each) for each in made),
        moment(now),
        declared(scope, stored),
        made,
        DrillObserved(Objects({}), made),
        INSTANCE,
    )
    return tuple(int(action.name.removeprefix("c")) for action in plan_schedule(observed).actions if isinstance(action, Delete))


SCHEDULE = example("scheduled-checkpoint.yaml", drill=None, suspend=True)


def _deleted(_: Scope, world: World) -> Steps:
    for each in world.there if not world.expired else ():
        checkpoints = tuple(other._replace(missed=True) if other == each else other for other in world.checkpoints)
        yield f"a person deletes Checkpoint {each.at}", world._replace(checkpoints=checkpoints, believed=False, doubted=True)


def _status_lost(_: Scope, world: World) -> Steps:
    if world.stored.told:
        yield "the Tablespace loses its status", world._replace(stored=Stored())


def _archiver_crashes(_: Scope, world: World) -> Steps:
    if world.going is not None:
        yield "the archiver crashes", world._replace(going=None)


def _silent(scope: Scope, world: World) -> Steps:
    if not world.planned:
        yield from scope.looked(world._replace(begun=None), scope._look(world)._replace(silent=True))


def _unread(scope: Scope, world: World) -> Steps:
    if not world.planned:
        yield from scope.looked(world._replace(begun=None), scope._look(world)._replace(unread=True))


def _unproven(scope: Scope, world: World) -> Steps:
    if all(each.at < world.today for each in world.checkpoints):
        yield f"Checkpoint {world.today} ends, and only its files are read again", ended(scope, world, proven=False)


def _clock_ahead(_: Scope, world: World) -> Steps:
    yield "the operator's clock is ahead", world._replace(clock=AHEAD)


def _clock_right(_: Scope, world: World) -> Steps:
    if world.clock:
        yield "the operator's clock is set back", world._replace(clock=0)


def _stamp_ahead(scope: Scope, world: World) -> Steps:
    if world.today < scope.days and not world.overnight:
        told = "a day passes, and a row is written by a leader whose clock is ahead"
        yield told, world.tomorrow(world.today + 1 + AHEAD)


FAULTS: Mapping[str, Callable[[Scope, World], Steps]] = {
    "a person deletes": _deleted,
    "status lost": _status_lost,
    "archiver crash": _archiver_crashes,
    "silence": _silent,
    "unread": _unread,
    "unproven": _unproven,
    "clock ahead": _clock_ahead,
    "clock right": _clock_right,
    "stamp ahead": _stamp_ahead,
}

SCOPES = {
    "an archive that begins": Scope(),
    "a window": Scope(2, 4),
    "a log that is kept until a Checkpoint": Scope(
        1, 3, archived=False, keeps=True, faults=("a person deletes", "unproven"), most_faults=2
    ),
    "a log without an archive": Scope(1, 3, archived=False, faults=("a person deletes", "unproven"), most_faults=2),
    "a Checkpoint that a person deletes": Scope(1, 3, faults=("a person deletes",)),
    "what can't be read": Scope(2, 4, faults=("silence", "unread"), older=False),
    "a status that is lost": Scope(2, 4, faults=("status lost",)),
    "clocks": Scope(1, 3, faults=("clock ahead", "clock right"), most_faults=2),
    "a leader's clock": Scope(2, 4, faults=("stamp ahead",)),
    "Checkpoints elsewhere": Scope(1, 3, elsewhere=True, faults=("a person deletes",)),
    "open transactions": Scope(2, 4, transactions=True, faults=("archiver crash",)),
    "Checkpoints that are read late": Scope(1, 3, late=True, faults=("a person deletes",)),
}


@pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)
def test_whatever_happens_in_whichever_order_the_window_can_be_restored(scope: Scope) -> None:
    scope.explored().require_right()


def _until_then(tablespace: Tablespace, checkpoints: object, instance: object, now: datetime.datetime) -> object:
    """As if no archive got further while a schedule is looked at."""
    told = tablespace.status.archive.lsn_timestamp if tablespace.status is not None and tablespace.status.archive is not None else None
    return needed_by_archive(tablespace, checkpoints, instance, NOON if told is None else datetime.datetime.fromisoformat(told))  # type: ignore[arg-type]


def _by_now_alone(within: str, now: datetime.datetime, _: int) -> datetime.datetime:
    return now - duration_of(within)


def _as_if_all_were_archived(seen: TablespaceObserved, uuid: str) -> object:
    everything = ArchiveProgress("archives", ArchivedRange((0, 0), 0, True, (98, 0), 0, (99, 0)), 0, 0.0)
    return plan_pins.log_pin_steps(replace(seen, archive=replace(seen.archive, progress=everything)), uuid)


WITHOUT: dict[str, tuple[str, tuple[object, ...], str, object]] = {
    "keeping what the window begins with": ("a window", (series,), "needed_by_archive", lambda *_: frozenset()),
    "keeping what the window may begin with meanwhile": ("an archive that begins", (series,), "needed_by_archive", _until_then),
    "telling the status first": ("a window", (archive_expiry,), "_published", lambda *_: True),
    "asking what was ordered": ("Checkpoints elsewhere", (archive_expiry, status_archive), "archive_begins", lambda held, *_: held.first),
    "counting back from the archive's end": ("clocks", (archive_expiry,), "window_start", _by_now_alone),
    "keeping what an open transaction needs": (
        "open transactions",
        (checkpoint_base,),
        "_restart",
        lambda status: (status.lsn.ledger_id, 0),
    ),
    "keeping the log for the archive": ("a window", (sys.modules[__name__],), "log_pin_steps", _as_if_all_were_archived),
    "counting proofs alone": ("a log that is kept until a Checkpoint", (checkpoint_base,), "is_proof", bool),
    "asking for a second disk": ("a log without an archive", (plan_pins,), "_held_twice", lambda *_: iter([((99, 0), "")])),
    "keeping the highest proven Checkpoint": ("a log without an archive", (schedules,), "expired_runs", lambda _, runs, *__: runs[:-1]),
}


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    planned.cache_clear()
    expiring.cache_clear()
    yield
    planned.cache_clear()
    expiring.cache_clear()


@pytest.mark.parametrize("without", WITHOUT.values(), ids=WITHOUT)
def test_without_one_of_the_rules_a_story_is_found_that_breaks_it(
    without: tuple[str, tuple[object, ...], str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    scope, owners, rule, instead = without
    for owner in owners:
        monkeypatch.setattr(owner, rule, instead)
    SCOPES[scope].explored().require_wrong()
