"""A small model of what the node program (images/herddb), ZooKeeper and BookKeeper do with the log of one tablespace.

A row is a bit; a copy's rows are the bits that it has. A ledger begins with an entry without a row, as HerdDB's do. A client's write is
acknowledged in the step that adds it. Steps that write to ZooKeeper by compare-and-set are split from the reads before them, so that
anything can happen in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

Lsn = tuple[int, int]
START: Lsn = (-1, -1)
WRONG = 1 << 15
"""A row that the log does not have."""
NOTHING = 0


@dataclass(frozen=True)
class Rules:
    """The node program's rules, as far as they may differ. `first_list_is_created`: a tablespace's first list of ledgers is written only
    where there is none. `ledger_zero_counts`: a copy whose checkpoint is in ledger 0 needs that ledger. `only_applied_counts`: a follower
    that could not apply an entry does not say that it has. `list_is_the_fenced_one`: who begins to write accepts no other list.
    `only_closed_is_left`: a boot goes on behind a ledger only if it sees that one as closed."""

    first_list_is_created: bool = True
    ledger_zero_counts: bool = True
    only_applied_counts: bool = True
    list_is_the_fenced_one: bool = True
    only_closed_is_left: bool = True


class Ledger(NamedTuple):
    """`entries` are rows, NOTHING for an entry without one. `closed`: nobody can add to it."""

    entries: tuple[int, ...] = (NOTHING,)
    closed: bool = False
    dropped: bool = False


class Listing(NamedTuple):
    """The list of a log's ledgers, in ZooKeeper."""

    ids: tuple[int, ...]
    first: int
    version: int


class Node(NamedTuple):
    """`heard`: by the operator and ZooKeeper. `away`: for longer than the log is retained. `role`: none, fenced (it has replayed the log),
    opened (it has a ledger that it has not listed), leader, rolling, follower, refusing (it could not apply an entry), failed.

    `lsn` and `rows` are in its memory, `disk_lsn` and `disk_rows` its local checkpoint. `barred`: the LSN up to which an equal
    verdict leaves it barred. `listed` and `version` are the list that it has
    read, `ledger` the one that it writes, `drops` the one that it is about to drop."""

    up: bool = True
    heard: bool = True
    away: bool = False
    role: str = "none"
    lsn: Lsn = START
    rows: int = 0
    listed: tuple[int, ...] = ()
    version: int = -1
    ledger: int = -1
    drops: int = -1
    disk_lsn: Lsn = START
    disk_rows: int = 0
    barred: Lsn | None = None


class Log(NamedTuple):
    """What ZooKeeper, the bookies and the nodes have of one tablespace. `acknowledged` are the rows that clients were told of, `written` is
    how many there were. `pins` are those of the nodes, `pin` is the operator's."""

    leader: int
    replicas: tuple[int, ...]
    version: int
    listing: Listing | None
    ledgers: tuple[Ledger, ...]
    nodes: tuple[Node, ...]
    pins: tuple[Lsn | None, ...]
    pin: Lsn | None = None
    acknowledged: int = 0
    written: int = 0

    def with_node(self, number: int, **changes: object) -> Log:
        """The same, with another state of a node."""
        node = self.nodes[number]._replace(**changes)  # type: ignore[arg-type] - fields of Node
        return self._replace(nodes=(*self.nodes[:number], node, *self.nodes[number + 1 :]))

    def with_ledger(self, number: int, **changes: object) -> Log:
        """The same, with another state of a ledger."""
        ledger = self.ledgers[number]._replace(**changes)  # type: ignore[arg-type] - fields of Ledger
        return self._replace(ledgers=(*self.ledgers[:number], ledger, *self.ledgers[number + 1 :]))

    def rows_until(self, lsn: Lsn) -> int:
        """All rows that the log ever had up to there."""
        rows = 0
        for number, ledger in enumerate(self.ledgers[: lsn[0] + 1]):
            for row in ledger.entries[: lsn[1] + 1] if number == lsn[0] else ledger.entries:
                rows |= row
        return rows


Steps = Iterator[tuple[str, Log]]


def settled(nodes: int = 2, rows: int = 1) -> Log:
    """Node 0 leads and the others follow; each has a local checkpoint in ledger 0, and of the last row none has one."""
    entries = (NOTHING, *(1 << row for row in range(rows)))
    everything = (1 << rows) - 1
    there = Node(lsn=(0, rows), rows=everything, disk_lsn=(0, 0), disk_rows=0)
    leader = there._replace(role="leader", listed=(0,), version=0, ledger=0)
    return Log(
        leader=0,
        replicas=tuple(range(nodes)),
        version=0,
        listing=Listing((0,), 0, 0),
        ledgers=(Ledger(entries),),
        nodes=(leader, *(there._replace(role="follower") for _ in range(nodes - 1))),
        pins=((0, 0),) * nodes,
        acknowledged=everything,
        written=rows,
    )


def unwritten(nodes: int = 2) -> Log:
    """A tablespace that was just declared for all nodes: it has no log yet."""
    return Log(0, tuple(range(nodes)), 0, None, (), (Node(),) * nodes, (None,) * nodes)


def has_all_after(listing: Listing | None, lsn: Lsn) -> bool:
    """Whether the log still lists everything after a checkpoint (NodeCommitLog.hasAllAfter)."""
    return listing is None or (listing.first if lsn == START else lsn[0]) in listing.ids


def _boots_from(listing: Listing | None, lsn: Lsn, rules: Rules) -> bool:
    """Whether a boot finds the ledgers that it needs. HerdDB's own recovery takes ledger 0 for none."""
    return has_all_after(listing, lsn) or (lsn[0] == 0 and not rules.ledger_zero_counts)


def _replayed(log: Log, node: Node) -> tuple[Lsn, int]:
    """What a copy has once everything listed behind its local checkpoint is applied."""
    return _applied(log, node.disk_lsn, node.disk_rows)


def _applied(log: Log, lsn: Lsn, rows: int) -> tuple[Lsn, int]:
    for number in log.listing.ids if log.listing is not None else ():
        entries = log.ledgers[number].entries
        if number >= lsn[0]:
            for row in entries[lsn[1] + 1 :] if number == lsn[0] else entries:
                rows |= row
            lsn = max(lsn, (number, len(entries) - 1))
    return lsn, rows


def node_steps(log: Log, number: int, rules: Rules, most: tuple[int, int]) -> Steps:
    """What a node may do next. `most`: rows and ledgers."""
    node = log.nodes[number]
    if not node.up:
        yield f"node {number} starts again", log.with_node(number, up=True, heard=True, away=False)
        return
    if not node.heard:
        yield f"node {number} is heard again", log.with_node(number, heard=True)
    match node.role:
        case "none":
            yield from _boot(log, number, rules)
        case "fenced":
            yield _open(log, number, rules)
        case "opened" | "rolling":
            yield _list(log, number, rules)
        case "leader":
            yield from _lead(log, number, most)
            yield from _release(log, number)
        case "follower" | "refusing":
            yield from _follow(log, number, rules)
        case "failed":
            yield f"node {number} takes its failed log away", _without_memory(log, number)


def _without_memory(log: Log, number: int) -> Log:
    node = log.nodes[number]
    kept = Node(node.up, node.heard, node.away, disk_lsn=node.disk_lsn, disk_rows=node.disk_rows, barred=node.barred)
    return log._replace(nodes=(*log.nodes[:number], kept, *log.nodes[number + 1 :]))


def crashed(log: Log, number: int) -> Log:
    """The same, with a node whose process has ended: it keeps its disk."""
    return _without_memory(log, number).with_node(number, up=False, heard=False)


def _boot(log: Log, number: int, rules: Rules) -> Steps:
    node = log.nodes[number]
    boots = _boots_from(log.listing, node.disk_lsn, rules)
    if number == log.leader:
        if boots:
            fenced = log
            for ledger in log.listing.ids if log.listing is not None else ():
                if ledger >= node.disk_lsn[0]:
                    fenced = fenced.with_ledger(ledger, closed=True)
            lsn, rows = _replayed(log, node)
            listed = log.listing.ids if log.listing is not None else ()
            yield (
                f"node {number} boots as the leader: it fences and replays the log",
                fenced.with_node(number, role="fenced", lsn=lsn, rows=rows, listed=listed),
            )
    elif number in log.replicas:
        if boots:
            lsn, rows = _replayed(log, node)
            yield f"node {number} boots as a follower", log.with_node(number, role="follower", lsn=lsn, rows=rows)
        elif (leader := log.nodes[log.leader]).role == "leader" and leader.heard:
            copied = {"lsn": leader.lsn, "rows": leader.rows, "disk_lsn": leader.lsn, "disk_rows": leader.rows}
            yield f"node {number} copies the tables of node {log.leader}, and follows", log.with_node(number, role="follower", **copied)


def _open(log: Log, number: int, rules: Rules) -> tuple[str, Log]:
    node = log.nodes[number]
    listed = log.listing.ids if log.listing is not None else ()
    version = log.listing.version if log.listing is not None else -1
    if listed != node.listed and rules.list_is_the_fenced_one:
        return f"node {number} reads another list than it has fenced: its boot fails", _without_memory(log, number)
    opened = log._replace(ledgers=(*log.ledgers, Ledger()))
    return (
        f"node {number} opens ledger {len(log.ledgers)}, which it has yet to list",
        opened.with_node(number, role="opened", listed=listed, version=version, ledger=len(log.ledgers)),
    )


def _list(log: Log, number: int, rules: Rules) -> tuple[str, Log]:
    """The compare-and-set of the list with a new ledger."""
    node = log.nodes[number]
    now = log.listing.version if log.listing is not None else -1
    blind = node.version == -1 and not rules.first_list_is_created
    if now != node.version and not blind:
        return f"node {number} can't list its ledger {node.ledger}: the list has changed", log.with_node(number, role="failed")
    ids = (*node.listed, node.ledger)
    listing = Listing(ids, log.listing.first if log.listing is not None and node.listed else ids[0], now + 1)
    return (
        f"node {number} lists ledger {node.ledger}, and leads",
        log._replace(listing=listing).with_node(number, role="leader", listed=ids, version=now + 1, lsn=(node.ledger, 0)),
    )


def _lead(log: Log, number: int, most: tuple[int, int]) -> Steps:
    node, ledger = log.nodes[number], log.ledgers[log.nodes[number].ledger]
    if log.leader != number:
        yield f"node {number} reads that it leads no more", _without_memory(log, number)
    if log.written < most[0]:
        if ledger.closed:
            yield f"a client writes to node {number}, whose ledger is fenced: its log fails", log.with_node(number, role="failed")
        else:
            row = 1 << log.written
            added = log.with_ledger(node.ledger, entries=(*ledger.entries, row))
            told = added._replace(acknowledged=log.acknowledged | row, written=log.written + 1)
            lsn = (node.ledger, len(ledger.entries))
            yield f"node {number} acknowledges row {log.written}", told.with_node(number, lsn=lsn, rows=node.rows | row)
    if len(log.ledgers) < most[1]:
        rolled = log.with_ledger(node.ledger, closed=True)._replace(
            ledgers=(*log.ledgers[: node.ledger], ledger._replace(closed=True), *log.ledgers[node.ledger + 1 :], Ledger())
        )
        yield (
            f"node {number} closes its ledger {node.ledger} and opens ledger {len(log.ledgers)}, which it has yet to list",
            rolled.with_node(number, role="rolling", ledger=len(log.ledgers), drops=-1),
        )
    yield from _checkpoint(log, number)


def _checkpoint(log: Log, number: int) -> Steps:
    node = log.nodes[number]
    if node.disk_lsn != node.lsn or node.disk_rows != node.rows or log.pins[number] != node.lsn:
        pinned = log._replace(pins=(*log.pins[:number], node.lsn, *log.pins[number + 1 :]))
        yield (
            f"node {number} writes its tables at {node.lsn} to its disk, and moves its pin there",
            pinned.with_node(number, disk_lsn=node.lsn, disk_rows=node.rows),
        )


def _release(log: Log, number: int) -> Steps:
    """LogRelease and ReleaseRule: every ledger that has ended is past the retention."""
    node = log.nodes[number]
    if node.drops >= 0:
        dropped = node.drops
        if log.listing is None or log.listing.version != node.version or node.listed[:1] != (dropped,) or len(node.listed) < 2:
            yield f"node {number} can't drop ledger {dropped}: the list has changed", log.with_node(number, drops=-1)
            return
        listing = Listing(node.listed[1:], log.listing.first, node.version + 1)
        gone = log._replace(listing=listing).with_ledger(dropped, dropped=True)
        yield f"node {number} drops ledger {dropped}", gone.with_node(number, drops=-1, listed=listing.ids, version=listing.version)
    elif len(node.listed) > 1 and all(lsn is not None and lsn[0] > node.listed[0] for lsn in _needs(log, number)):
        yield f"node {number} finds that nobody needs ledger {node.listed[0]}", log.with_node(number, drops=node.listed[0])


def _needs(log: Log, number: int) -> Iterator[Lsn | None]:
    """From where on the log is needed; None where that is not known."""
    yield log.nodes[number].disk_lsn
    if log.pin is not None:
        yield log.pin
    for other in log.replicas:
        pin = log.pins[other]
        copies_from_the_leader = pin is not None and not has_all_after(log.listing, pin)
        if other != number and not log.nodes[other].away and not copies_from_the_leader:
            yield pin


def _follow(log: Log, number: int, rules: Rules) -> Steps:
    node = log.nodes[number]
    if number not in log.replicas or log.leader == number or node.role == "refusing":
        yield f"node {number} stops its copy", _without_memory(log, number)
    if node.role == "refusing" and rules.only_applied_counts:
        return
    if node.role == "follower":
        lsn, rows = _applied(log, node.lsn, node.rows)
        if lsn != node.lsn and (log.listing is None or node.lsn == START or node.lsn[0] in log.listing.ids):
            yield f"node {number} applies the log up to {lsn}", log.with_node(number, lsn=lsn, rows=rows)
    yield from _checkpoint(log, number)


def refused(log: Log, number: int, rules: Rules) -> Steps:
    """A follower's tables refuse the next entry: HerdDB has taken down its position by then."""
    node = log.nodes[number]
    lsn, rows = _applied(log, node.lsn, node.rows)
    if node.role == "follower" and rows != node.rows:
        claimed = node.lsn if rules.only_applied_counts else lsn
        yield f"node {number} can't apply what is at {lsn}", log.with_node(number, role="refusing", lsn=claimed)


def boots_behind(log: Log, number: int, rules: Rules) -> Steps:
    """A node boots, and its BookKeeper client asks a member of ZooKeeper that is behind: the ledgers before the last one look open, and of
    an open one the last entry is not known to be confirmed."""
    node = log.nodes[number]
    if rules.only_closed_is_left or log.listing is None or node.role != "none" or not node.up:
        return
    seen = log
    for ledger in log.listing.ids[:-1]:
        seen = seen.with_ledger(ledger, entries=log.ledgers[ledger].entries[:-1])
    for (told, short), (_, booted) in zip(_boot(seen, number, rules), _boot(log, number, rules), strict=True):
        lsn, rows = short.nodes[number].lsn, short.nodes[number].rows
        yield f"{told}, as a member of ZooKeeper that is behind shows it", booted.with_node(number, lsn=lsn, rows=rows)


def leads_by_itself(log: Log, number: int, rules: Rules) -> Steps:
    """HerdDB's own failover: it knows what the log has, and the bar."""
    node, leader = log.nodes[number], log.nodes[log.leader]
    may = node.barred is None and _boots_from(log.listing, node.disk_lsn, rules)
    if node.role == "follower" and number != log.leader and number in log.replicas and may and not (leader.up and leader.heard):
        named = log._replace(leader=number, version=log.version + 1)
        yield f"node {number} does not hear of node {log.leader}, and makes itself the leader", named


def wrong_with(log: Log) -> str | None:
    """What is wrong with the rows, None when nothing is."""
    for number, node in enumerate(log.nodes):
        writes = node.role == "leader" and log.listing is not None and node.ledger in log.listing.ids
        if writes and not log.ledgers[node.ledger].closed and log.acknowledged & ~node.rows:
            return f"node {number} leads without row {_lowest(log.acknowledged & ~node.rows)}, which was acknowledged"
        if missing := log.rows_until(node.disk_lsn) & ~node.disk_rows:
            return f"the disk of node {number} says that it has everything up to {node.disk_lsn}, and lacks row {_lowest(missing)}"
    return None


def _lowest(rows: int) -> int:
    return (rows & -rows).bit_length() - 1
