"""No entry loses its copies by what the operator does to bookies: rolls, drains, replacements of lost ones, and all of it together.

All orders, within small bounds: the operator looks and acts, pods and sessions come and go, writers write, autorecovery copies, users
change their mind, something fails. `make model` goes further. See modelled_bookies.py for what is taken from BookKeeper.

The drain of one bookie, with copies that can't be read back, has a model of its own: test_model_drain.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, product

import pytest
from exploration import MORE_FAULTS, Explored, Explorer
from modelled_bookies import (
    COPIES,
    FAULTS,
    GOING,
    LONGEST,
    NEW,
    OLD,
    SERVES,
    WRITABLE,
    Order,
    Seen,
    Steps,
    World,
    autorecovery,
    built_claims,
    controllers,
    done,
    jobs,
    named_by,
    opened,
    planned,
    processes,
    seen,
    stateful_set,
    writers,
)
from modelled_ledgers import Ledger, Segment

from herdkeeper.bookkeeper.drain import plan as drains
from herdkeeper.bookkeeper.drain import procedure
from herdkeeper.bookkeeper.plan import bookies as plans
from herdkeeper.bookkeeper.plan import gate
from herdkeeper.bookkeeper.plan import lost_bookie as losses
from herdkeeper.bookkeeper.state.bookies import LedgerScan
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.planning import rolling

MOST_STATES = 20_000 if MORE_FAULTS == 0 else 60_000
SETTLES: set[World] = set()
"""States from which the declared bookies are reached once nothing fails any more."""


def ledger(*bookies: int, still_open: bool = False) -> Ledger:
    return Ledger((Segment(frozenset(bookies), frozenset(bookies)),), still_open)


@dataclass(frozen=True)
class Scope:
    """`sizes` and `drains` are what a user declares, and changes `wishes` times. Which faults there are, by their names in FAULTS. `opens`:
    so many ledgers come.
    `stale`: anything can happen between what the operator reads first and the ledgers. `unread`: it may fail to read the ledgers.
    `outdated`: all pods are of an earlier template."""

    ledgers: tuple[Ledger, ...]
    sizes: tuple[int, ...]
    faults: tuple[str, ...] = ()
    most_faults: int = 1
    drains: tuple[frozenset[int], ...] = (frozenset(),)
    wishes: int = 2
    opens: int = 0
    stale: bool = False
    unread: bool = False
    outdated: bool = False

    def explored(self) -> Explored:
        size, faults = self.sizes[0], self.most_faults + MORE_FAULTS
        serves = SERVES._replace(pod=OLD) if self.outdated else SERVES
        start = World((serves,) * size, self.ledgers, size, opens=self.opens, wishes=self.wishes, faults=faults)
        return Explorer[World](self._steps, _wrong).explore(start, MOST_STATES)

    def _steps(self, world: World) -> Steps:
        for told, after in self._all_steps(world):
            yield told, after._replace(lost=False) if after.lost and after.whole else after

    def _all_steps(self, world: World) -> Steps:
        yield from _looks_late(world) if self.stale else _operator(world)
        if self.unread and not world.planned:
            yield from _planned(world, seen(world), None)
        if world.planned:
            yield "the operator crashes", world._replace(planned=())
        yield from _others(world)
        yield from opened(world)
        for size, drain in product(self.sizes, self.drains) if world.wishes else ():
            if (size, drain) != (world.declared, world.drain):
                after = world._replace(declared=size, drain=drain, wishes=world.wishes - 1)
                yield f"{size} bookies are declared, and {sorted(drain)} shall leave", after
        if world.faults:
            for fault in self.faults:
                for told, after in FAULTS[fault](world):
                    yield told, after._replace(faults=world.faults - 1)


def _others(world: World) -> Steps:
    yield from controllers(world)
    yield from processes(world)
    yield from jobs(world)
    yield from autorecovery(world)
    yield from writers(world)


def _operator(world: World) -> Steps:
    yield from _acts(world) if world.planned else _planned(world, seen(world), named_by(world))


def _looks_late(world: World) -> Steps:
    """It reads the ledgers some time after the rest."""
    if world.planned:
        yield from _acts(world)
    elif world.begun is not None:
        found = False
        for told, after in _planned(world._replace(begun=None), world.begun, named_by(world)):
            found = True
            yield told, after
        if not found:
            yield "the operator reads the ledgers, and does nothing", world._replace(begun=None)
    else:
        yield "the operator reads who is registered, and objects", world._replace(begun=seen(world))


def _planned(world: World, of: Seen, ledgers: tuple[Ledger, ...] | None) -> Steps:
    orders = planned(of, ledgers).orders
    if orders:
        mistake = next((why for order in orders if (why := _mistake(of, ledgers, order)) is not None), None)
        yield (
            f"the operator plans {[(each.what, each.number, *each.detail) for each in orders]}",
            world._replace(planned=orders, mistake=mistake),
        )


def _acts(world: World) -> Steps:
    order = world.planned[0]
    after = done(world._replace(planned=world.planned[1:]), order)
    if after is None:
        yield f"refused to the operator: {order.what} of bookie {order.number}", world._replace(planned=())
    else:
        yield f"the operator: {order.what} of bookie {order.number} {order.detail or ''}", after


def _mistake(of: Seen, ledgers: tuple[Ledger, ...] | None, order: Order) -> str | None:
    """What is wrong with an order, by what was seen when it was planned."""
    number = order.number
    bookie = of.bookies[number] if number < len(of.bookies) else SERVES
    match order.what:
        case "delete the Pod" if GOING in bookie.claims:
            return f"the pod of bookie {number} is deleted, which keeps its volumes"
        case "delete the Pod" if bookie.session:
            named = {each for ledger in ledgers or () for segment in ledger.segments for each in segment.bookies}
            away = sorted(each for each in named - {number} if not of.bookies[each].session)
            writable = [each for each, other in enumerate(of.bookies) if other.session == WRITABLE and each != number]
            if ledgers is None or away or len(writable) < COPIES:
                return f"bookie {number} is restarted while {away} are away, and {writable} are writable"
        case "delete the PersistentVolumeClaim" | "remove the cookie" | "create the Job" | "delete the StatefulSet" if ledgers is None:
            return f"{order.what} of bookie {number}, and nobody knows which ledgers name it"
        case "remove the cookie" | "delete the PersistentVolumeClaim" | "delete the StatefulSet":
            if any(ledger.names(number) for ledger in ledgers or ()):
                return f"{order.what} of bookie {number}, and ledgers name it"
    return None


def _wrong(world: World) -> str | None:
    if world.mistake is not None:
        return world.mistake
    for number, ledger in enumerate(world.ledgers):
        if any(not segment.copies for segment in ledger.segments):
            return f"entries of ledger {number} have no copy"
    if not world.lost and not world.whole:
        return "entries have less than two copies, and nobody else lost one"
    for number, bookie in enumerate(world.bookies):
        if not bookie.exists and world.names(number):
            return f"bookie {number} is gone, and ledgers name it"
    restarted = world.those(lambda bookie: bookie.rolled and not bookie.runs)
    if len(needed := [number for number in sorted(restarted) if world.names(number)]) > 1:
        return f"the operator restarts {needed} at once, and ledgers name them"
    return why_unsettled(world)


def why_unsettled(world: World) -> str | None:
    """Why the declared bookies do not all serve with all copies once nothing fails any more, and no user changes anything. None if they
    do, or if a person has to decide."""
    world = world._replace(planned=(), begun=None, lost=False, opens=0, wishes=0, faults=0)
    way: list[World] = []
    while world not in SETTLES:
        way.append(world)
        step = next(chain(_operator(world), _others(world)), None)
        if step is None:
            if (why := _why_not_as_declared(world)) is not None:
                return why
            break
        if len(way) > LONGEST:
            return f"it goes on without an end: {step[0]}: {world}"
        world = step[1]
        if world.mistake is not None:
            return world.mistake
    SETTLES.update(way)
    return None


def _why_not_as_declared(world: World) -> str | None:
    waits = planned(seen(world), named_by(world)).waits
    if waits is not None and waits.needs_person:
        return None
    found = [bookie for number, bookie in enumerate(world.bookies) if bookie.exists and number not in world.drain]
    serving = [bookie for bookie in found if bookie.takes_entries and bookie.pod == NEW and not bookie.marked and bookie.has_data]
    there = world.those(lambda bookie: bookie.exists)
    if not len(there) == len(found) == len(serving) == world.declared:
        return f"nothing more is done, by {waits}: {world}"
    lacking = [number for number, ledger in enumerate(world.ledgers) if any(each.copies != each.bookies for each in ledger.segments)]
    return f"ledgers {lacking} lack copies for good: {world}" if lacking else None


CLOSED, WRITTEN = ledger(0, 1), ledger(1, 2, still_open=True)
SCOPES = {
    "a roll": Scope((WRITTEN,), (3,), ("crash", "template"), most_faults=2),
    "a roll, and lost volumes": Scope((CLOSED,), (3,), ("disk lost",), outdated=True),
    "a roll, and deleted claims": Scope((CLOSED,), (3,), ("claims deleted",), outdated=True),
    "lost volumes": Scope((CLOSED, WRITTEN), (3,), ("disk lost", "one volume lost", "emptied", "crash")),
    "lost volumes, and ledgers that are read late": Scope((CLOSED,), (3,), ("disk lost", "claims deleted"), stale=True),
    "lost volumes, and ledgers that can't be read": Scope((CLOSED,), (3,), ("disk lost",), unread=True, outdated=True),
    "lost cookies": Scope((CLOSED,), (3,), ("cookie lost", "crash"), most_faults=2),
    "ledgers that come": Scope((CLOSED,), (3,), ("claims deleted", "crash"), opens=1),
    "a bookie that leaves, and is asked for again": Scope((ledger(2, 3, still_open=True),), (4, 3), stale=True),
    "a bookie that leaves, and crashes": Scope((ledger(0, 3),), (4, 3), ("crash",), wishes=1),
    "a bookie that leaves, and lost volumes": Scope((ledger(0, 3),), (4, 3), ("disk lost",), wishes=1),
    "a roll, and a bookie that leaves": Scope((ledger(0, 3),), (4, 3), outdated=True, wishes=1),
    "two bookies that leave": Scope((ledger(3, 4),), (5, 3)),
    "a bookie that leaves by its number": Scope((CLOSED,), (3,), drains=(frozenset(), frozenset({0}))),
}


@pytest.fixture(autouse=True)
def _settled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What all bookies share is in place; what is modelled is the order of the steps."""
    for name in ("build_bookies_shared", "build_autorecovery", "needed_applies"):
        monkeypatch.setattr(plans, name, lambda *_, **__: ())
    for name in ("build_bookie_token", "build_racks"):
        monkeypatch.setattr(plans, name, lambda *_: None)
    monkeypatch.setattr(plans, "build_bookie", lambda _, identity, *__, **___: stateful_set(identity.number, stopped=False))
    monkeypatch.setattr(plans, "build_bookie_claims", lambda _, identity: built_claims(identity.number))
    monkeypatch.setattr(drains, "build_stopped_bookie", lambda _, identity, *__: stateful_set(identity.number, stopped=True))
    planned.cache_clear()
    SETTLES.clear()
    yield
    planned.cache_clear()
    SETTLES.clear()


@pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)
def test_whatever_happens_in_whichever_order_the_operator_takes_no_copy_away(scope: Scope) -> None:
    scope.explored().require_right()


WITHOUT: dict[str, tuple[Scope, tuple[object, ...], str, object, str]] = {
    "a gate of the roll": (SCOPES["a roll"], (plans,), "why_not_restart", lambda *_: None, "is restarted while"),
    "asking whether ledgers lack copies": (
        SCOPES["a roll, and lost volumes"],
        (LedgerScan,),
        "lacking_copies",
        lambda *_, **__: None,
        "are away",
    ),
    "asking for writable bookies": (Scope((CLOSED,), (2,), outdated=True), (gate,), "_too_few_writable", lambda *_: None, "are writable"),
    "waiting for what can't be read": (
        SCOPES["lost volumes, and ledgers that can't be read"],
        (gate,),
        "_ledgers",
        lambda _: None,
        "is restarted",
    ),
    "knowing that a session outlives its volumes": (
        SCOPES["a roll, and lost volumes"],
        (BookieFleet,),
        "holders",
        property(lambda fleet: fleet.known_metadata.registered),
        "at once",
    ),
    "leaving a pod alone that keeps its volumes": (
        SCOPES["a roll, and deleted claims"],
        (plans, rolling),
        "wait_for_deleted_claim",
        lambda *_: None,
        "which keeps its volumes",
    ),
    "asking whether ledgers need a lost bookie": (SCOPES["lost volumes"], (losses,), "_why_needed", lambda *_: None, "and ledgers name it"),
    "retiring a lost bookie": (SCOPES["lost volumes"], (plans,), "retire_lost", lambda _: (), "nothing more is done"),
    "restoring a cookie": (SCOPES["lost cookies"], (plans,), "restored_cookie", lambda *_: None, "nothing more is done"),
    "emptying a bookie before it stops": (
        SCOPES["a bookie that leaves by its number"],
        (procedure,),
        "_between_rounds",
        lambda *_: procedure.Stop(),
        "goes on without an end",
    ),
    "making a bookie writable whose drain is taken back": (
        SCOPES["a bookie that leaves by its number"],
        (plans,),
        "cancel_drains",
        lambda _: (),
        "nothing more is done",
    ),
}


@pytest.mark.parametrize("without", WITHOUT.values(), ids=WITHOUT)
def test_without_one_of_the_rules_a_story_is_found_that_breaks_it(
    without: tuple[Scope, tuple[object, ...], str, object, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scope, owners, rule, instead, wrong = without
    for owner in owners:
        monkeypatch.setattr(owner, rule, instead)
    scope.explored().require_wrong(wrong)
