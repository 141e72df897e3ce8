"""Invariant 10: a deletion takes no data along that its policy retains or that another resource uses, and each deletion comes to an end.

All orders in which resources of one stack are deleted, change their policy and are reconciled, servers stop, ZooKeeper falls silent and the
operator crashes. `make model` goes further. A policy counts as it was when a step was planned.

Not in it: resources that are deleted before they have their finalizer (test_reconcile_deletion.py), ones that are made anew or can't be
read (test_plan_deletion.py), the files of Checkpoints (test_plan_checkpoint_removal.py), and data below a root that two clusters share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from exploration import MORE_FAULTS, Explored, Explorer
from situations import claim, objects, pods, quickstart, with_metadata, with_spec, with_status
from test_plan_deletion import METADATA, STORE
from test_plan_herddb import SEEN as DATABASE
from test_plan_tablespace import SETTLED

from herdkeeper.api.resource import Condition, Resource
from herdkeeper.bookkeeper import deletion as bookies
from herdkeeper.bookkeeper.state.bookies import MetadataAbsent
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.clients.dependents import observe_dependents
from herdkeeper.engine import reconcile as engine
from herdkeeper.engine.kinds import Steps, steps_by_kind
from herdkeeper.engine.reconcile import finalizer_step
from herdkeeper.herddb import deletion as databases
from herdkeeper.herddb.state.cluster import RecordAbsent
from herdkeeper.herddb.tablespace import deletion as tablespaces
from herdkeeper.planning.actions import Action, Delete, DeleteLogs, DeleteZnodes, DropTablespace, Plan, SetFinalizer
from herdkeeper.planning.deletion import take_down, waiting_for_users
from herdkeeper.settings import Settings
from herdkeeper.shared import names
from herdkeeper.shared.dependents import NO_DEPENDENTS, Dependents
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper import deletion as ensembles
from herdkeeper.zookeeper.state import Ensemble

MOST_STATES = 30_000 if MORE_FAULTS == 0 else 200_000
LONGEST = 60
"""Steps from the deletion of everything to its end, at most."""
ZK, BK, DB, TS = range(4)
DECLARED: tuple[Any, ...] = tuple(quickstart(kind) for kind in ("ZooKeeperCluster", "BookKeeperCluster", "HerdDBCluster", "Tablespace"))
SINCE = "2026-01-01T00:00:00Z"
SILENCE = Unknown("silence")
POD = {ZK: "zk-zookeeper-0", BK: "bk-bookie-0-0", DB: "db-herddb-0"}
VOLUME = {ZK: "data-zk-zookeeper-0", BK: "bk-bookie-0-journal", DB: "data-db-herddb-0"}


class Made(NamedTuple):
    """A resource, and what belongs to it: `workload` is its StatefulSet, `servers` are the pods. `deletes`: its policy. `waits`: its
    deletion has waited for long for somebody silent. `volumes` are a tablespace's tables, too, and `znodes` its log."""

    there: bool = True
    deletes: bool = False
    finalizer: bool = False
    going: bool = False
    waits: bool = False
    workload: bool = True
    servers: bool = True
    volumes: bool = True
    znodes: bool = True


class World(NamedTuple):
    """`planned` are steps of the resource `at`. `wishes`: so often may a person change a policy. `complete`: all data must go."""

    made: tuple[Made, ...]
    silent: bool = False
    at: int = 0
    planned: tuple[str, ...] = ()
    wishes: int = 0
    complete: bool = False
    faults: int = 0
    mistake: str | None = None

    def changed(self, at: int, **fields: bool) -> World:
        found = self.made[at]._replace(**fields)
        return self._replace(made=(*self.made[:at], found, *self.made[at + 1 :]))

    def serves(self, at: int) -> bool:
        """With all that it needs."""
        return not self.silent and all(each.servers for each in self.made[: at + 1])

    def uses(self, at: int) -> bool:
        """Whether the next resource is there, and nobody deletes it."""
        return at < TS and self.made[at + 1].there and not self.made[at + 1].going


Steps_ = Iterator[tuple[str, World]]
BY_KIND = steps_by_kind(Settings())


@dataclass(frozen=True)
class Scope:
    """The policies of the four at first, and what a person may change. `silence`: ZooKeeper may fall silent."""

    deletes: tuple[bool, bool, bool, bool]
    wishes: int = 0
    silence: bool = False
    faults: int = 1

    def explored(self) -> Explored:
        made = tuple(Made(deletes=deletes, finalizer=deletes or at < DB) for at, deletes in enumerate(self.deletes))
        complete = all(self.deletes) and not self.silence and not self.wishes
        start = World(made, wishes=self.wishes, complete=complete, faults=self.faults + MORE_FAULTS if self.silence else 0)
        return Explorer[World](self._steps, _wrong).explore(start, MOST_STATES)

    def _steps(self, world: World) -> Steps_:
        yield from _operator(world)
        yield from _pods(world)
        for at, each in enumerate(world.made):
            if each.there and not each.going:
                yield f"a person deletes {DECLARED[at].KIND}", _deleted(world, at)
            if each.there and world.wishes:
                changed = world.changed(at, deletes=not each.deletes)._replace(wishes=world.wishes - 1)
                yield f"{DECLARED[at].KIND} is to {'retain' if each.deletes else 'delete'}", changed
        if world.planned:
            yield "the operator crashes", world._replace(planned=())
        if world.faults:
            yield "ZooKeeper falls silent", world._replace(silent=True, faults=world.faults - 1)
        if world.silent:
            yield "ZooKeeper answers again", world._replace(silent=False)


def _deleted(world: World, at: int) -> World:
    """Kubernetes takes the servers of what it deletes along, and no data."""
    if world.made[at].finalizer:
        return world.changed(at, going=True)
    return world.changed(at, there=False, workload=False)


def _pods(world: World) -> Steps_:
    for at, each in enumerate(world.made):
        if each.servers and not each.workload:
            yield f"the pods of {DECLARED[at].KIND} end", world.changed(at, servers=False)


def _operator(world: World) -> Steps_:
    if world.planned:
        yield _done(world)
        return
    for at, each in enumerate(world.made):
        if each.there:
            steps, silent = planned(world._replace(planned=(), at=at, wishes=0, faults=0, mistake=None))
            if steps:
                mistake = next((why for step in steps if (why := _mistake(world, at, step)) is not None), None)
                yield f"{DECLARED[at].KIND} is looked at: {steps}", world._replace(at=at, planned=steps, mistake=mistake)
            elif silent and not each.waits:
                yield f"{DECLARED[at].KIND} waits for two minutes", world.changed(at, waits=True)
            elif not silent and each.waits:
                yield f"{DECLARED[at].KIND} is looked at, and waits no more", world.changed(at, waits=False)


def _mistake(world: World, at: int, step: str) -> str | None:
    made = world.made[at]
    if step in ("volumes", "znodes", "logs", "drop"):
        if not made.going:
            return f"{step} of {DECLARED[at].KIND} go, and it is not deleted"
        if not made.deletes:
            return f"{step} of {DECLARED[at].KIND} go, and its policy is to retain"
        if made.servers and step != "drop" and at != TS:
            return f"{step} of {DECLARED[at].KIND} go, and its servers run"
    if step in ("servers", "volumes", "znodes") and at < DB and world.uses(at):
        return f"{step} of {DECLARED[at].KIND} go, and {DECLARED[at + 1].KIND} uses it"
    return None


def _done(world: World) -> tuple[str, World]:  # noqa: PLR0911 - one line a step
    at, (step, *left) = world.at, world.planned
    told, after, made = f"{DECLARED[at].KIND}: {step}", world._replace(planned=tuple(left)), world.made[at]
    match step:
        case "hold":
            return told, after.changed(at, finalizer=True)
        case "servers":
            return told, after.changed(at, workload=False)
        case "volumes":
            after = after.changed(at, volumes=False)
            for other in (BK, DB, TS) if at == ZK else ():
                after = after.changed(other, znodes=False)
            return told, after
        case "drop":
            return told, after.changed(at, volumes=False)
        case "znodes" | "logs":
            after = after.changed(at, znodes=False)
            return told, after.changed(TS, znodes=False) if at == DB else after
        case "deleted" if made.deletes and (made.servers or made.volumes) and at != TS:
            return told, after._replace(mistake=f"{DECLARED[at].KIND} counts as deleted with its data, and some is left")
        case "let go" if world.complete and at != TS:  # its database takes it along
            return told, after._replace(mistake=f"data of {DECLARED[at].KIND} is left behind")
        case _:
            gone = after.changed(at, finalizer=False)
            return told, gone.changed(at, there=False, workload=False) if made.going else gone


def resource(world: World, at: int) -> Any:
    made = world.made[at]
    found = with_spec(DECLARED[at], deletion_policy="Delete" if made.deletes else "Retain")
    reason = Reason.UNREADABLE if made.waits else Reason.DELETING
    ready = Condition(type="Ready", status="False", reason=reason.value, message="", last_transition_time=SINCE, observed_generation=1)
    found = with_status(found, conditions=(ready,), **({"uuid": "a-uuid"} if at == TS else {}))
    return with_metadata(
        found,
        finalizers=(names.FINALIZER,) if made.finalizer else (),
        deletion_timestamp=SINCE if made.going else None,
    )


def dependents_of(world: World, at: int) -> Dependents:
    """By the operator's own rule, of what is stored."""
    if at == TS or not world.made[at + 1].there:
        return NO_DEPENDENTS
    made, kind = world.made[at + 1], type(DECLARED[at + 1])
    field = {ZK: "zooKeeperRef", BK: "bookKeeperRef", DB: "herdDBRef"}[at]
    metadata: dict[str, Any] = {"name": DECLARED[at + 1].metadata.name, "finalizers": [names.FINALIZER] if made.finalizer else []}
    if made.going:
        metadata["deletionTimestamp"] = SINCE
    stored = {"metadata": metadata, "spec": {field: {"name": DECLARED[at].metadata.name}}}
    reader: Any = SimpleNamespace(kubernetes=SimpleNamespace(documents=lambda *_: (stored,)))
    return observe_dependents(resource(world, at), kind, reader)


def objects_of(world: World, at: int) -> Objects:
    made = world.made[at]
    workload = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "servers", "uid": "uid-servers"}}
    running = pods([POD[at]]) if made.servers else {}
    return objects({("StatefulSet", "servers"): workload} if made.workload else {}, running, claim(VOLUME[at]) if made.volumes else {})


def seen(world: World, at: int) -> Any:
    """As it is observed."""
    made, users = world.made[at], dependents_of(world, at)
    match at:
        case 0:
            return Ensemble(resource(world, at), objects_of(world, at), dependents=users)
        case 1:
            metadata = SILENCE if not world.serves(ZK) else METADATA if made.znodes else MetadataAbsent()
            store = STORE if world.made[ZK].there else Problem(Reason.WAITING_FOR_ZOOKEEPER, "gone")
            return BookieFleet(resource(world, at), objects_of(world, at), store, metadata, (), dependents=users)
        case 2:
            root = made.znodes if world.serves(ZK) else SILENCE
            log = DATABASE.bookkeeper if world.made[BK].there else None
            found = replace(DATABASE, cluster=resource(world, at), objects=objects_of(world, at), dependents=users)
            return replace(found, bookkeeper=log, root=root)
        case _:
            declared = replace(SETTLED, tablespace=resource(world, at))
            if not world.made[DB].there:
                return replace(declared, herddb=None)
            reached = world.serves(ZK)
            record = SETTLED.record if made.volumes else RecordAbsent()
            nodes = SETTLED.nodes if world.serves(DB) else dict.fromkeys(SETTLED.nodes, SILENCE)
            return replace(declared, record=record if reached else SILENCE, log_left=made.znodes if reached else SILENCE, nodes=nodes)


@cache
def planned(world: World) -> tuple[tuple[str, ...], bool]:
    """The steps by the operator's own plan, and whether it waits for somebody silent."""
    declared: Resource = resource(world, world.at)
    of = BY_KIND[declared.KIND]
    steps = Steps(of.observe, of.refusals, lambda *_: Plan(), of.summarize, of.plan_deletion)
    plan = engine._plan(declared, seen(world, world.at), steps)
    return tuple(map(_step, plan.actions)), plan.wait is not None and plan.wait.reason is Reason.UNREADABLE


def _step(action: Action) -> str:  # noqa: PLR0911 - one line an action
    match action:
        case SetFinalizer(present=True):
            return "hold"
        case SetFinalizer(reason=reason):
            return "deleted" if reason is Reason.DATA_DELETED else "let go"
        case Delete(kind="PersistentVolumeClaim" | "Secret"):
            return "volumes"
        case Delete():
            return "servers"
        case DeleteZnodes():
            return "znodes"
        case DeleteLogs():
            return "logs"
        case DropTablespace():
            return "drop"
    raise AssertionError(f"{action} is not modelled")


def _wrong(world: World) -> str | None:
    return world.mistake or why_unfinished(world)


@cache
def _end_of(world: World) -> str | None:
    for _ in range(LONGEST):
        step = next(chain(_operator(world), _pods(world)), None)
        if step is None:
            left = [DECLARED[at].KIND for at, each in enumerate(world.made) if each.there]
            return f"{left} never go: {world}" if left else None
        world = step[1]
        if world.mistake is not None:
            return world.mistake
    return f"it goes on without an end: {world}"


def why_unfinished(world: World) -> str | None:
    """Why not all go, once all are deleted. None if they do."""
    world = world._replace(planned=(), wishes=0, faults=0)
    for at, each in enumerate(world.made):
        if each.there and not each.going:
            world = _deleted(world, at)
    return _end_of(world)


SCOPES = {
    "all are retained": Scope((False, False, False, False), wishes=1),
    "all are deleted with their data": Scope((True, True, True, True)),
    "all are deleted, and ZooKeeper falls silent": Scope((True, True, True, True), silence=True),
    "a database that is retained": Scope((True, True, False, True), wishes=1),
    "a tablespace that is retained": Scope((True, True, True, False), wishes=1),
    "servers below that are retained": Scope((False, False, True, True), silence=True),
}


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    planned.cache_clear()
    _end_of.cache_clear()
    yield
    planned.cache_clear()
    _end_of.cache_clear()


@pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)
def test_whatever_is_deleted_in_whichever_order_nothing_goes_that_is_retained_or_used(scope: Scope) -> None:
    scope.explored().require_right()


def _never_let_go(of: Any, users: Dependents) -> SetFinalizer | None:
    step = finalizer_step(of, users)
    return step if step is not None and step.present else None


def _volumes_first(of: Objects, kinds: tuple[str, ...]) -> Plan | None:
    return take_down(Objects({key: item for key, item in of.items.items() if key[0] in kinds}), kinds)


def _still_waiting(*_: object) -> Plan:
    return Plan.waiting(Reason.UNREADABLE, "silence")


def _only_undeleted(users: Dependents) -> Plan | None:
    return waiting_for_users(replace(users, deleting=()))


ROOMS = (ensembles, bookies, databases)
ALL, SILENT = "all are deleted with their data", "all are deleted, and ZooKeeper falls silent"
WITHOUT: dict[str, tuple[str, tuple[object, ...], str, object, str]] = {
    "following the policy": ("all are retained", (engine,), "finalizer_step", _never_let_go, "its policy is to retain"),
    "asking who uses it": (SILENT, (engine,), "waiting_for_users", lambda _: None, "uses it"),
    "asking who still deletes data with it": (ALL, (engine,), "waiting_for_users", _only_undeleted, "is left behind"),
    "stopping servers first": (ALL, ROOMS, "take_down", _volumes_first, "its servers run"),
    "deleting volumes": (ALL, (ensembles,), "take_down", lambda *_: None, "and some is left"),
    "giving up": (SILENT, (bookies, databases, tablespaces), "wait_or_give_up", _still_waiting, "never go"),
}


@pytest.mark.parametrize("without", WITHOUT.values(), ids=WITHOUT)
def test_without_one_of_the_rules_a_story_is_found_that_breaks_it(
    without: tuple[str, tuple[object, ...], str, object, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scope, owners, rule, instead, wrong = without
    for owner in owners:
        monkeypatch.setattr(owner, rule, instead)
    SCOPES[scope].explored().require_wrong(wrong)
