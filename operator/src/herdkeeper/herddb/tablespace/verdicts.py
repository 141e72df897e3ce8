"""What is known of each replica's rows: equal to the log at an LSN, or different, as a verified Checkpoint found out; or different from the
leader's, as a full check or their numbers tell.

Checkpoints come and go, so a Tablespace's status remembers the verdicts, and a node that its copy was found different.
A copy that differs is moved aside and made anew; an annotation of the Tablespace says up to which LSN verdicts were about the old copy.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from herdkeeper.api import Checkpoint, Tablespace
from herdkeeper.api.checkpoint import Lsn
from herdkeeper.api.tablespace import ReplicaStatus
from herdkeeper.herddb.state.cluster import NodeView
from herdkeeper.shared import names
from herdkeeper.shared.unknown import Unknown

NO_NODES: Mapping[str, NodeView | Unknown] = {}
_UNTIL, _PROVEN = " until ", " verified"
_LSN = "([0-9]{1,19}),([0-9]{1,19})"
_REBUILT = re.compile(f"{_LSN}(?:{_UNTIL}{_LSN})?({_PROVEN})?")


@dataclass(frozen=True)
class Verdict:
    """Of the replica on `node`, at `lsn` (ledger id, entry id). `different_tables` are those that differ, as far as they could be told;
    `equal` that none does. `at` is RFC 3339, `checkpoint` the name of the resource that found it out; None when only the node remembers.
    `against_leader`: the leader's rows, or their numbers, told it, and not the log. `made_anew`: the copy was made anew since one differed
    before, and was never equal since.

    Only a Checkpoint compares with the log. From the leader's rows, and from what a node remembers, it can't be told whether this copy or
    the leader is wrong: such a verdict bars the copy from promotion, and removes nothing.
    """

    node: str
    lsn: tuple[int, int]
    equal: bool
    different_tables: tuple[str, ...] = ()
    at: str | None = None
    checkpoint: str | None = None
    made_anew: bool = False
    against_leader: bool = False

    @property
    def compared_with_log(self) -> bool:
        """Whether a Checkpoint found it out."""
        return self.checkpoint is not None

    @property
    def sentence(self) -> str:
        """What was found out, without the node."""
        found_by = f"Checkpoint {self.checkpoint}" if self.checkpoint else None if self.equal else "as its node keeps on its disk"
        if self.against_leader:
            return f"had other rows than the leader at LSN {self.lsn[0]},{self.lsn[1]} in {', '.join(self.different_tables)}"
        where = f"at LSN {self.lsn[0]},{self.lsn[1]}" + (f" ({found_by})" if found_by else "")
        if self.equal:
            return f"was equal to the log {where}"
        return f"had other rows than the log {where} in {', '.join(self.different_tables) or 'unknown tables'}"


def _newest(found: Iterable[Verdict]) -> Mapping[str, Verdict]:
    """By node: the verdict at the highest LSN. Of two at the same LSN one that says different counts: it is the one that must not be
    missed.
    """
    newest: dict[str, Verdict] = {}
    for verdict in found:
        known = newest.get(verdict.node)
        if known is None or (verdict.lsn, not verdict.equal) > (known.lsn, not known.equal):
            newest[verdict.node] = verdict
    return newest


@dataclass(frozen=True)
class Rebuilt:
    """A node's copy was moved aside for what a Checkpoint found out at `lsn`; what is there since is another one. `until` is where the log
    ended then: another Checkpoint may have held the old copy anywhere up to there, and tell of it later. `proven`: the new copy was equal
    to the log once.
    """

    lsn: tuple[int, int]
    until: tuple[int, int]
    proven: bool = False

    @property
    def text(self) -> str:
        """As the annotation has it."""
        until = f"{_UNTIL}{self.until[0]},{self.until[1]}" if self.until > self.lsn else ""
        return f"{self.lsn[0]},{self.lsn[1]}{until}{_PROVEN if self.proven else ''}"

    def is_about(self, verdict: Verdict) -> bool:
        """Whether a verdict is about the new copy. The old one was not equal at `lsn`, so a new one may be, in a log that has not grown."""
        return verdict.lsn >= self.lsn if verdict.equal else verdict.lsn > self.until


def rebuilt(tablespace: Tablespace, node: str) -> Rebuilt | None:
    """What the Tablespace's annotation says of a node; None when it says nothing, or what can't be read: then it is made anew once more."""
    match = _REBUILT.fullmatch(tablespace.metadata.annotations.get(names.SET_ASIDE_PREFIX + node, ""))
    if match is None:
        return None
    lsn = int(match[1]), int(match[2])
    return Rebuilt(lsn, (int(match[3]), int(match[4])) if match[3] else lsn, bool(match[5]))


def verdicts_in_force(
    tablespace: Tablespace | None, uuid: str, checkpoints: Iterable[Checkpoint] = (), nodes: Mapping[str, NodeView | Unknown] = NO_NODES
) -> Mapping[str, Verdict]:
    """By node: the newest verdict about the copy that the tablespace with this uuid has there now, out of what the Tablespace's status says
    and what Checkpoints found out; where neither says anything, what the node itself remembers. `tablespace` is None where no resource
    declares it.
    """
    status = tablespace.status if tablespace is not None else None
    remembered = status.replicas if status is not None and status.uuid in (None, uuid) else ()
    found = (*map(_remembered, remembered), *(_found_by(checkpoint, uuid) for checkpoint in checkpoints))
    known = _weighed(_in_force(tablespace, found))
    wrong = {node for node, verdict in known.items() if not verdict.equal}
    barred = _newest(_in_force(tablespace, _barred(nodes, uuid)))
    failing = _failing(nodes, uuid, {*wrong, *barred})
    return {**barred, **_weighed(_in_force(tablespace, (*found, *_miscounted(nodes, uuid, wrong), *failing)))}


def _weighed(found: Iterable[Verdict]) -> Mapping[str, Verdict]:
    """By node: what the log says, unless the leader's rows have told something else since. They never outweigh that a copy differs from the
    log: it is made anew for that."""
    verdicts = tuple(found)
    by_log = _newest(verdict for verdict in verdicts if not verdict.against_leader)
    by_leader = _newest(verdict for verdict in verdicts if verdict.against_leader)
    return {**by_log, **{node: verdict for node, verdict in by_leader.items() if _outweighs(verdict, by_log.get(node))}}


def _outweighs(by_leader: Verdict, by_log: Verdict | None) -> bool:
    return by_log is None or (by_log.equal and by_log.lsn < by_leader.lsn)


def _in_force(tablespace: Tablespace | None, found: Iterable[Verdict | None]) -> Iterable[Verdict]:
    about_present = (_about_present_copy(tablespace, verdict) for verdict in found if verdict is not None)
    return (verdict for verdict in about_present if verdict is not None)


def _miscounted(nodes: Mapping[str, NodeView | Unknown], uuid: str, wrong: Collection[str]) -> Iterable[Verdict]:
    """The followers that have other numbers of rows than the leader at the very same LSN. At another LSN nothing follows from them. A table
    that only one of them tells is empty at the other: who booted while a transaction was open tells the tables that it makes.

    Nor does anything follow from those of a leader that is known to be `wrong`: they would bar the good copies."""
    views = ((node, view) for node, view in nodes.items() if not isinstance(view, Unknown))
    copies = {node: (copy, copy.counts) for node, view in views for copy in view if copy.uuid == uuid and copy.counts is not None}
    leading = [counts for node, (copy, counts) in copies.items() if copy.role == "leader" and node not in wrong and copy.barred is not True]
    for node, (copy, counts) in copies.items():
        if copy.role == "follower" and len(leading) == 1 and counts.lsn == leading[0].lsn:
            tables = sorted({*counts.tables, *leading[0].tables})
            different = tuple(table for table in tables if counts.tables.get(table, 0) != leading[0].tables.get(table, 0))
            if different:
                yield Verdict(node, counts.lsn, equal=False, different_tables=different, against_leader=True)


def _failing(nodes: Mapping[str, NodeView | Unknown], uuid: str, wrong: Collection[str]) -> Iterable[Verdict]:
    """The copies that had other rows than the leader when its check came by. From one of a leader that is known to be `wrong` nothing
    follows."""
    views = ((node, view) for node, view in nodes.items() if not isinstance(view, Unknown))
    for node, copy in ((node, copy) for node, view in views for copy in view if copy.uuid == uuid):
        failed = [check for check in copy.checks if not check.passed and check.leader not in wrong]
        if failed:
            tables = tuple(sorted(check.table for check in failed))
            yield Verdict(node, max(check.lsn for check in failed), equal=False, different_tables=tables, against_leader=True)


def _barred(nodes: Mapping[str, NodeView | Unknown], uuid: str) -> Iterable[Verdict]:
    """What nodes remember: a copy is barred from promotion since it was found different."""
    copies = ((node, copy) for node, view in nodes.items() if not isinstance(view, Unknown) for copy in view if copy.uuid == uuid)
    return (Verdict(node, copy.lsn, equal=False) for node, copy in copies if copy.barred is True and copy.lsn is not None)


def _about_present_copy(tablespace: Tablespace | None, verdict: Verdict) -> Verdict | None:
    """None for one about a copy that was moved aside since."""
    before = rebuilt(tablespace, verdict.node) if tablespace is not None else None
    if before is None:
        return verdict
    if not before.is_about(verdict):
        return None
    return verdict if verdict.equal else replace(verdict, made_anew=not before.proven)


def judged(nodes: Mapping[str, NodeView | Unknown], uuid: str, verdicts: Mapping[str, Verdict]) -> dict[str, NodeView | Unknown]:
    """What nodes say of their tablespaces, and of the one with this uuid how their rows differ."""
    return {node: view if isinstance(view, Unknown) else _judged(view, uuid, verdicts.get(node)) for node, view in nodes.items()}


def _judged(view: NodeView, uuid: str, verdict: Verdict | None) -> NodeView:
    if verdict is None or verdict.equal:
        return view
    return tuple(replace(copy, differs=verdict.sentence) if copy.uuid == uuid else copy for copy in view)


def replicas_of(tablespace: Tablespace) -> tuple[ReplicaStatus, ...]:
    """What its status says of its replicas."""
    return tablespace.status.replicas if tablespace.status is not None else ()


def different(verdicts: Mapping[str, Verdict], nodes: Iterable[str]) -> Sequence[Verdict]:
    """Of these nodes, those that had other rows, by name."""
    return [verdicts[node] for node in sorted(nodes) if node in verdicts and not verdicts[node].equal]


def verdicts_on(verdicts: Mapping[str, Verdict], nodes: Collection[str]) -> Mapping[str, Verdict]:
    """Those about copies on these nodes. Of one that has left nothing can be read or moved aside before it comes back."""
    return {node: verdict for node, verdict in verdicts.items() if node in nodes}


def _remembered(replica: ReplicaStatus) -> Verdict | None:
    if replica.verified_lsn is None or replica.verdict not in ("Equal", "Different"):
        return None
    equal, tables = replica.verdict == "Equal", replica.different_tables or ()
    return Verdict(
        replica.node,
        _pair(replica.verified_lsn),
        equal,
        tables,
        replica.verified_at,
        replica.verified_by,
        against_leader=not equal and replica.verified_by is None and bool(tables),
    )


def _found_by(checkpoint: Checkpoint, uuid: str) -> Verdict | None:
    found = checkpoint.status.comparison if checkpoint.status is not None else None
    if checkpoint.status is None or found is None or found.tablespace_uuid != uuid:
        return None
    at, name = checkpoint.status.completed_at, checkpoint.metadata.name
    return Verdict(found.node, _pair(found.lsn), found.result == "Equal", found.different_tables or (), at, name)


def _pair(lsn: Lsn) -> tuple[int, int]:
    return lsn.ledger_id, lsn.entry_id
