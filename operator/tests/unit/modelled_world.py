"""A whole stack as a model: one tablespace's log and nodes, the operator's keys, Checkpoints, and what can go wrong with each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from exploration import Explored, Explorer
from modelled_nodes import (
    START,
    WRONG,
    Log,
    Lsn,
    Rules,
    boots_behind,
    crashed,
    has_all_after,
    leads_by_itself,
    node_steps,
    refused,
    wrong_with,
)
from modelled_operator import (
    Aside,
    Bar,
    Finding,
    Lead,
    Marks,
    Order,
    Pin,
    Replicas,
    Resource,
    Status,
    adjusting_orders,
    for_leaders,
    known_to_differ,
    lead_orders,
    seen_of,
)


class World(NamedTuple):
    """Everything. `orders` are what the Tablespace's key has yet to do of its plan. `faults`: how many more may happen. `mistake`: what was
    done that must not be."""

    log: Log
    resource: Resource | None
    finding: Finding | None = None
    verified: Lsn | None = None
    orders: tuple[Order, ...] = ()
    faults: int = 0
    mistake: str | None = None


Steps = Iterator[tuple[str, World]]
OF_THE_NODE_PROGRAM = Rules()
AS_DECLARED = Resource()
COMES_BACK = ("starts again", "is heard again")
"""How sentences end that tell of a node that comes back."""


@dataclass(frozen=True)
class Scope:
    """How far a model goes: `rows` and `ledgers` at most, and which `faults` can happen, by their names in FAULTS, `most_faults` of them in
    a story. `keeps`: the log is kept until a Checkpoint. `resource` is the Tablespace at first, None where none declares it."""

    start: Log
    most_faults: int
    faults: frozenset[str]
    rows: int = 2
    ledgers: int = 1
    rules: Rules = OF_THE_NODE_PROGRAM
    keeps: bool = False
    resource: Resource | None = AS_DECLARED

    def explored(self, most_states: int) -> Explored:
        """All states that can be reached, up to a number."""
        explorer = Explorer[World](self._steps, self._wrong)
        return explorer.explore(World(self.start, self.resource, faults=self.most_faults), most_states)

    def stuck(self, done: Callable[[World], bool], most_states: int) -> Explored:
        """The first state from which no step leads to one that is `done`, where neither processes nor connections come back."""

        def steps(world: World) -> Steps:
            return ((told, after) for told, after in self._steps(world) if not told.endswith(COMES_BACK))

        return Explorer[World](steps, self._wrong).stuck(World(self.start, self.resource, faults=self.most_faults), done, most_states)

    def _wrong(self, world: World) -> str | None:
        return world.mistake or wrong_with(world.log) or (_released_too_early(world) if self.keeps else None)

    def _steps(self, world: World) -> Steps:
        for number in range(len(world.log.nodes)):
            for told, after in node_steps(world.log, number, self.rules, (self.rows, self.ledgers)):
                yield told, world._replace(log=after)
        yield from self._operator(world)
        yield from _finding(world)
        if self.keeps:
            yield from _verified(world)
        if world.faults:
            for fault in sorted(self.faults):
                for told, after in FAULTS[fault](world, self.rules):
                    yield told, after._replace(faults=world.faults - 1)

    def _operator(self, world: World) -> Steps:
        """Both keys. A leader is moved in the step that looks, since a record that changed meanwhile refuses it. What the Tablespace's key
        plans is done one by one."""
        seen = seen_of(world.log, world.resource, world.finding, (world.verified, self.keeps))
        for order in lead_orders(for_leaders(seen)):
            yield _lead(world, order)
        if world.orders:
            yield _next_order(world)
        elif world.resource is not None and world.resource.readable:
            planned = adjusting_orders(seen)
            orders = tuple(replace(each, version=world.log.version) if isinstance(each, Replicas) else each for each in planned)
            if orders != (Status(world.resource.verdicts),) or not world.resource.known:
                yield "the operator looks at the Tablespace", world._replace(orders=orders)


def is_led(world: World) -> bool:
    """Whether the recorded leader leads and is heard, and can write."""
    log, node = world.log, world.log.nodes[world.log.leader]
    return node.up and node.heard and node.role == "leader" and not log.ledgers[node.ledger].closed


def holds_no_wrong_row(world: World) -> bool:
    """Whether each node has a replica, and none has a row that the log does not have."""
    right = not any((node.rows | node.disk_rows) & WRONG for node in world.log.nodes)
    return right and set(world.log.replicas) == set(range(len(world.log.nodes))) and is_led(world)


def _finding(world: World) -> Steps:
    if world.finding is None:
        for number, node in enumerate(world.log.nodes):
            if node.role == "follower" and node.heard and node.lsn != START and node.rows != world.log.rows_until(node.lsn):
                found = Finding(number, node.lsn, equal=False)
                yield f"a Checkpoint finds that the copy of node {number} differs", world._replace(finding=found)


def _verified(world: World) -> Steps:
    lsn = max((node.lsn for node in world.log.nodes if node.role == "leader"), default=START)
    if lsn > (world.verified or START):
        yield f"a Checkpoint up to {lsn} is verified", world._replace(verified=lsn)


def _released_too_early(world: World) -> str | None:
    """What the next Checkpoint needs is gone: what comes after the newest one, or all of the log."""
    since = (world.verified or START)[0]
    gone = [number for number, ledger in enumerate(world.log.ledgers) if ledger.dropped and number >= since]
    return f"ledger {gone[0]} is gone, which the next Checkpoint needs" if gone else None


def _lead(world: World, order: Lead) -> tuple[str, World]:
    """Also notes when a copy is given the leadership that can't boot, or of which is written down somewhere that it differs."""
    log, node = world.log, world.log.nodes[order.node]
    named = log._replace(leader=order.node, version=log.version + 1)
    evidence = "its own disk says so" if node.barred is not None else None
    if world.resource is not None and order.node in known_to_differ(world.resource):
        evidence = evidence or "the stored Tablespace says so"
    mistake = f"node {order.node} is made the leader, though its rows differ and {evidence}" if evidence and node.rows & WRONG else None
    follows = node.up and node.heard and node.role in ("follower", "refusing")
    if not (follows and order.node in log.replicas and has_all_after(log.listing, node.disk_lsn)):
        mistake = mistake or f"node {order.node} is made the leader, and can't boot from its disk and the log"
    return f"the operator makes node {order.node} the leader", world._replace(log=named, mistake=mistake)


def _next_order(world: World) -> tuple[str, World]:
    """What is refused ends the plan, and the status is written; of a bar nothing depends."""
    order, left = world.orders[0], world._replace(orders=world.orders[1:])
    if isinstance(order, Marks | Status):
        return _stored(left, order)
    told, log = _changed(world.log, order)
    if log is None and not isinstance(order, Bar):
        return told, left._replace(orders=tuple(each for each in left.orders if isinstance(each, Status)))
    return told, left if log is None else left._replace(log=log)


def _stored(left: World, order: Marks | Status) -> tuple[str, World]:
    assert left.resource is not None, "its plan ends with the resource"
    if isinstance(order, Status):
        return "the operator writes the Tablespace's status", left._replace(
            resource=left.resource._replace(verdicts=order.verdicts, known=True)
        )
    marks = tuple(sorted({**dict(left.resource.marks), order.node: order.text}.items()))
    return f"the operator notes that node {order.node} gets another copy", left._replace(resource=left.resource._replace(marks=marks))


def _changed(log: Log, order: Order) -> tuple[str, Log | None]:
    """What an order does to the log and its nodes; None when it is refused."""
    match order:
        case Replicas(nodes, version):
            if version != log.version:
                return "the operator's change of the replicas is refused", None
            return f"the operator changes the replicas to {nodes}", log._replace(replicas=nodes, version=version + 1)
        case Bar(number, until):
            return _barred(log, number, until)
        case Aside(number):
            node = log.nodes[number]
            if not node.heard or number in (*log.replicas, log.leader) or node.role != "none":
                return f"node {number} does not move its copy aside", None
            return f"node {number} moves its copy aside", log.with_node(number, disk_lsn=START, disk_rows=0, barred=None)
        case Pin(lsn):
            return f"the operator moves its pin to {lsn}", log._replace(pin=lsn)
        case _:
            raise AssertionError(f"the Tablespace's key has no business with {order}")


def _barred(log: Log, number: int, until: Lsn | None) -> tuple[str, Log | None]:
    if not log.nodes[number].heard or (until is not None and number not in (*log.replicas, log.leader)):
        return f"node {number} does not take the order about its bar", None
    told = "is barred from leading by itself" if until is not None else "may lead by itself again"
    return f"node {number} {told}", log.with_node(number, barred=until)


def _crash(world: World, _: Rules) -> Steps:
    for number, node in enumerate(world.log.nodes):
        if node.up:
            yield f"node {number} crashes", world._replace(log=crashed(world.log, number))


def _unheard(world: World, _: Rules) -> Steps:
    for number, node in enumerate(world.log.nodes):
        if node.heard:
            yield f"node {number} is heard no more, and lives", world._replace(log=world.log.with_node(number, heard=False))


def _away(world: World, _: Rules) -> Steps:
    for number, node in enumerate(world.log.nodes):
        if not node.up and not node.away:
            longer = world.log.with_node(number, away=True)
            yield f"node {number} stays away for longer than the log is retained", world._replace(log=longer)


def _wrong_row(world: World, _: Rules) -> Steps:
    for number, node in enumerate(world.log.nodes):
        if node.role == "follower" and not node.rows & WRONG:
            spoilt = world.log.with_node(number, rows=node.rows | WRONG, disk_rows=node.disk_rows | WRONG)
            yield f"the copy of node {number} gets a row that the log does not have", world._replace(log=spoilt)


def _refused(world: World, rules: Rules) -> Steps:
    for number in range(len(world.log.nodes)):
        for told, after in refused(world.log, number, rules):
            yield told, world._replace(log=after)


def _behind(world: World, rules: Rules) -> Steps:
    for number in range(len(world.log.nodes)):
        for told, after in boots_behind(world.log, number, rules):
            yield told, world._replace(log=after)


def _own_failover(world: World, rules: Rules) -> Steps:
    for number in range(len(world.log.nodes)):
        for told, after in leads_by_itself(world.log, number, rules):
            yield told, world._replace(log=after)


def _operator_crash(world: World, _: Rules) -> Steps:
    if world.orders:
        yield "the operator crashes", world._replace(orders=())


def _status_lost(world: World, _: Rules) -> Steps:
    if world.resource is not None and world.resource.known:
        yield "the Tablespace loses its status", world._replace(resource=world.resource._replace(known=False, verdicts=()))


def _unreadable(world: World, _: Rules) -> Steps:
    if world.resource is not None and world.resource.readable:
        yield "the Tablespace can't be read any more", world._replace(resource=world.resource._replace(readable=False))


def _deleted(world: World, _: Rules) -> Steps:
    if world.resource is not None:
        yield "the Tablespace is deleted, and its data is retained", world._replace(resource=None, orders=())


def _expired(world: World, _: Rules) -> Steps:
    if world.finding is not None:
        yield "the Checkpoint that compared is deleted", world._replace(finding=None)


FAULTS: Mapping[str, Callable[[World, Rules], Steps]] = {
    "crash": _crash,
    "unheard": _unheard,
    "away": _away,
    "wrong row": _wrong_row,
    "refused": _refused,
    "behind": _behind,
    "own failover": _own_failover,
    "operator crash": _operator_crash,
    "status lost": _status_lost,
    "unreadable": _unreadable,
    "deleted": _deleted,
    "expired": _expired,
}
