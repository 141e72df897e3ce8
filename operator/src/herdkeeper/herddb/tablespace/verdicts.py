"""Verdicts on each replica's rows. By a verified Checkpoint, they equal the log at an LSN, or differ from it. By a full check, or row
counts, they differ from the leader's.

Checkpoints expire, so a Tablespace's status keeps the verdicts, and a node remembers that its replica differed. A replica that differs is
set aside and rebuilt. An annotation of the Tablespace tells up to which LSN verdicts are about the old one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from herdkeeper.api import Checkpoint, Tablespace
from herdkeeper.api.tablespace import CheckedReplica, ReplicaStatus
from herdkeeper.codecs.herddb.ledgers import LedgerList
from herdkeeper.herddb.log.checkpoint_base import is_of_a_lost_time
from herdkeeper.herddb.state.cluster import NodeView, TableVerdict, copies_of
from herdkeeper.herddb.tablespace.full_check import KnownCheck, remembered_check
from herdkeeper.shared import names
from herdkeeper.shared.lsn import lsn_text
from herdkeeper.shared.time import moment_of
from herdkeeper.shared.unknown import Unknown

NO_NODES: Mapping[str, NodeView | Unknown] = {}
_UNTIL, _PROVEN, _OF = " until ", " verified", " of "
_LSN = "([0-9]{1,19}),([0-9]{1,19})"
_REBUILT = re.compile(f"{_LSN}(?:{_UNTIL}{_LSN})?({_PROVEN})?(?:{_OF}(.+))?")


@dataclass(frozen=True)
class Verdict:
    """The verdict on the replica on `node`, at `lsn` (ledger id, entry id).

    `different_tables` are the differing ones, as far as known; `equal`: none differs. `at` is RFC 3339; `checkpoint` is the resource that
    compared, None if only the node remembers. `against_leader`: compared with the leader's rows or counts, not with the log; `than` names
    whose rows. `made_anew`: the replica was rebuilt because it differed, and has not been equal since.

    Only a Checkpoint compares with the log. The leader's rows, or a node's memory, don't show whether this replica or the leader is wrong:
    such a verdict bars the replica from promotion, but removes nothing.
    """

    node: str
    lsn: tuple[int, int]
    equal: bool
    different_tables: tuple[str, ...] = ()
    at: str | None = None
    checkpoint: str | None = None
    made_anew: bool = False
    against_leader: bool = False
    than: str = "the leader"

    @property
    def compared_with_log(self) -> bool:
        """Whether a Checkpoint made the verdict."""
        return self.checkpoint is not None

    @property
    def outlives(self) -> tuple[int, int]:
        """The highest LSN at which an equal verdict leaves this different one in force. The log outweighs the leader's rows at one LSN."""
        ledger, entry = self.lsn
        return (ledger, max(entry - 1, 0)) if self.against_leader else self.lsn

    @property
    def sentence(self) -> str:
        """The verdict, without the node."""
        found_by = f"Checkpoint {self.checkpoint}" if self.checkpoint else None if self.equal else "as its node has noted on its disk"
        if self.against_leader:
            return f"had other rows than {self.than} at LSN {lsn_text(self.lsn)} in {', '.join(self.different_tables)}"
        where = f"at LSN {lsn_text(self.lsn)}" + (f" ({found_by})" if found_by else "")
        if self.equal:
            return f"was equal to the log {where}"
        return f"had other rows than the log {where} in {', '.join(self.different_tables) or 'unknown tables'}"


def _newest(found: Iterable[Verdict]) -> Mapping[str, Verdict]:
    """Returns by node the verdict at the highest LSN. Of two at the same LSN, a different one wins: it must not be missed."""
    newest: dict[str, Verdict] = {}
    for verdict in found:
        known = newest.get(verdict.node)
        if known is None or (verdict.lsn, not verdict.equal) > (known.lsn, not known.equal):
            newest[verdict.node] = verdict
    return newest


@dataclass(frozen=True)
class Rebuilt:
    """A node's files were set aside because of a Checkpoint's verdict at `lsn`; its replica since then is another one.

    `until` is where the log ended then: another Checkpoint may have compared the old replica anywhere up to there, and report later.
    `proven`: the new replica was equal to the log once. `uuid` is the tablespace's, since LSNs of another log mean nothing here; None in a
    mark of an earlier version.
    """

    lsn: tuple[int, int]
    until: tuple[int, int]
    proven: bool = False
    uuid: str | None = None

    @property
    def text(self) -> str:
        """The value of the annotation."""
        until = f"{_UNTIL}{lsn_text(self.until)}" if self.until > self.lsn else ""
        of = "" if self.uuid is None else f"{_OF}{self.uuid}"
        return f"{lsn_text(self.lsn)}{until}{_PROVEN if self.proven else ''}{of}"

    def is_about(self, verdict: Verdict) -> bool:
        """Returns whether a verdict is about the new replica. The old one was not equal at `lsn`, so an equal verdict there, in a log that
        has not grown, is about the new one. It may have been equal later, and a Checkpoint of then may end now.
        """
        if verdict.equal:
            return verdict.lsn == self.lsn or verdict.lsn >= self.until
        return verdict.lsn > self.until


def rebuilt(tablespace: Tablespace, node: str, uuid: str) -> Rebuilt | None:
    """Returns the Tablespace's annotation about a node. None if it is missing, unreadable, or about another tablespace, as in a manifest
    from a backup. Then the replica is rebuilt once more.
    """
    found = _rebuilt(tablespace.metadata.annotations.get(names.SET_ASIDE_PREFIX + node, ""))
    return None if found is None or found.uuid not in (None, uuid) else found


def _rebuilt(text: str) -> Rebuilt | None:
    match = _REBUILT.fullmatch(text)
    if match is None:
        return None
    lsn = int(match[1]), int(match[2])
    return Rebuilt(lsn, (int(match[3]), int(match[4])) if match[3] else lsn, bool(match[5]), match[6])


def verdicts_in_force(
    tablespace: Tablespace | None,
    uuid: str,
    checkpoints: Iterable[Checkpoint] = (),
    nodes: Mapping[str, NodeView | Unknown] = NO_NODES,
    ledgers: LedgerList | Unknown | None = None,
) -> Mapping[str, Verdict]:
    """Returns by node the newest verdict on the current replica of the tablespace with this uuid. It comes from the Tablespace's status and
    from Checkpoints, or else from what the node has on its disk, which may be newer. `tablespace` is None if no resource declares it.

    The log may have lost the time of a verdict, since volumes were put back to older copies. Its list of `ledgers` shows that, if known.
    """
    status = tablespace.status if tablespace is not None else None
    remembered = status.replicas if status is not None and status.uuid in (None, uuid) else ()
    told = (*map(_remembered, remembered), *(_found_by(checkpoint, uuid) for checkpoint in checkpoints))
    every = [verdict for verdict in told if verdict is not None]
    if isinstance(ledgers, LedgerList) and ledgers.active:
        tablespace = _without_lost_marks(tablespace, ledgers)
        compared = tuple(verdict for verdict in every if not _is_lost(verdict, ledgers))
    else:
        compared = tuple(verdict for verdict in every if not _is_of_a_lost_time(verdict, nodes, uuid, every))
    found = (*_doubted(tablespace, nodes, uuid, _weighed(_in_force(tablespace, uuid, compared))), *compared)
    known = _weighed(_in_force(tablespace, uuid, found))
    wrong = {node for node, verdict in known.items() if not verdict.equal}
    bars = tuple(_barred(nodes, uuid))
    # an older program notes no LSN with a bar, so that any verdict counts for more
    undated = {node for node, copy in copies_of(nodes, uuid) if copy.barred_until is None}
    brought_back = _brought_back(tablespace, uuid, [bar for bar in bars if bar.node not in undated], known)
    barred = _newest((*_in_force(tablespace, uuid, bars), *brought_back))
    failing = _failing(tablespace, nodes, uuid, {*wrong, *barred})
    # who is known to differ is not named anew with each entry: the status and the node's disk would be written as often
    miscounted = (verdict for verdict in _miscounted(nodes, uuid, wrong) if not _names_tables(known.get(verdict.node)))
    weighed = _weighed(_in_force(tablespace, uuid, (*found, *miscounted, *failing)))
    beaten = {node for node, bar in barred.items() if node in weighed and (node in undated or _lifts(weighed[node], bar))}
    return {**weighed, **{node: bar for node, bar in barred.items() if node not in beaten}}


def _is_lost(verdict: Verdict, ledgers: LedgerList) -> bool:
    """Whether the list shows that the log lost the verdict's entry. Clocks end no difference."""
    return is_of_a_lost_time(verdict.lsn[0], moment_of(verdict.at) if verdict.equal else None, ledgers)


def _without_lost_marks(tablespace: Tablespace | None, ledgers: LedgerList) -> Tablespace | None:
    """Drops annotations about replicas rebuilt in a time that the log lost: they would hide verdicts until the log is as long again."""
    if tablespace is None:
        return None
    lost = lost_marks(tablespace, ledgers)
    kept = {name: text for name, text in tablespace.metadata.annotations.items() if name not in lost}
    return tablespace.model_copy(update={"metadata": tablespace.metadata.model_copy(update={"annotations": kept})})


def lost_marks(tablespace: Tablespace, ledgers: LedgerList, beyond: int = -1) -> Mapping[str, Rebuilt]:
    """Returns the annotations of replicas that were rebuilt in a time that the log lost, up to an LSN in a ledger above `beyond`."""
    texts = tablespace.metadata.annotations.items()
    marks = {name: mark for name, text in texts if name.startswith(names.SET_ASIDE_PREFIX) and (mark := _rebuilt(text)) is not None}
    return {name: mark for name, mark in marks.items() if mark.until[0] > beyond and is_of_a_lost_time(mark.until[0], None, ledgers)}


def _is_of_a_lost_time(verdict: Verdict, nodes: Mapping[str, NodeView | Unknown], uuid: str, others: Iterable[Verdict]) -> bool:
    """Whether a replica was found equal at an LSN that the log lost, as far as known without its list: in a ledger that it has not reached
    again, or before the replica was found different at a lower LSN. Such a verdict would outweigh all later ones. The leader tells how far
    the log is, or without one its nodes.
    """
    if not verdict.equal:
        return False
    reached = [(copy.role == "leader", copy.lsn) for _, copy in copies_of(nodes, uuid) if copy.lsn is not None]
    if reached and verdict.lsn[0] > max(reached)[1][0]:
        return True
    lower = (other for other in others if other.node == verdict.node and not other.equal and other.lsn < verdict.lsn)
    found = moment_of(verdict.at)
    return found is not None and any(found < moment for other in lower if (moment := moment_of(other.at)) is not None)


def _names_tables(verdict: Verdict | None) -> bool:
    return verdict is not None and not verdict.equal and bool(verdict.different_tables)


def _weighed(found: Iterable[Verdict]) -> Mapping[str, Verdict]:
    """Returns by node the log's verdict, unless the leader's rows show something newer. They never outweigh a difference that a Checkpoint
    found, for which the replica is rebuilt. A node's memory of one falls to an earlier equal verdict than they do.
    """
    verdicts = tuple(found)
    by_log = _newest(verdict for verdict in verdicts if not verdict.against_leader)
    by_leader = _newest(verdict for verdict in verdicts if verdict.against_leader)
    return {**by_log, **{node: verdict for node, verdict in by_leader.items() if _outweighs(verdict, by_log.get(node))}}


def _outweighs(by_leader: Verdict, by_log: Verdict | None) -> bool:
    return by_log is None or (by_log.lsn < by_leader.lsn and (by_log.equal or not by_log.compared_with_log))


def _in_force(tablespace: Tablespace | None, uuid: str, found: Iterable[Verdict | None]) -> Iterable[Verdict]:
    about_present = (_about_present_copy(tablespace, uuid, verdict) for verdict in found if verdict is not None)
    return (verdict for verdict in about_present if verdict is not None)


def _miscounted(nodes: Mapping[str, NodeView | Unknown], uuid: str, wrong: Collection[str]) -> Iterable[Verdict]:
    """Returns the followers whose row counts differ from the leader's at the same LSN. Other LSNs prove nothing. A table that only one of
    them reports is empty at the other: a node that booted during a transaction reports tables that the transaction creates.

    Nor do counts of a leader that is known to be `wrong` prove anything: they would bar the good replicas.
    """
    copies = {node: (copy, copy.counts) for node, copy in copies_of(nodes, uuid) if copy.counts is not None}
    leading = [counts for node, (copy, counts) in copies.items() if copy.role == "leader" and node not in wrong and copy.barred is not True]
    for node, (copy, counts) in copies.items():
        if copy.role == "follower" and len(leading) == 1 and counts.lsn == leading[0].lsn:
            tables = sorted({*counts.tables, *leading[0].tables})
            different = tuple(table for table in tables if counts.tables.get(table, 0) != leading[0].tables.get(table, 0))
            if different:
                yield Verdict(node, counts.lsn, equal=False, different_tables=different, against_leader=True)


def _failing(
    tablespace: Tablespace | None, nodes: Mapping[str, NodeView | Unknown], uuid: str, wrong: Collection[str]
) -> Iterable[Verdict]:
    """Returns the replicas that differed from the leader in its check. A leader that is, or then was, `wrong` proves nothing."""
    for node, copy in copies_of(nodes, uuid):
        found = (check for check in copy.checks if not check.passed)
        failed = [check for check in found if check.leader not in wrong and not _was_wrong(tablespace, uuid, check)]
        if failed:
            tables = tuple(sorted(check.table for check in failed))
            yield Verdict(node, max(check.lsn for check in failed), equal=False, different_tables=tables, against_leader=True)


def contradicting(check: KnownCheck, tablespace: Tablespace, uuid: str, verdicts: Mapping[str, Verdict]) -> CheckedReplica | None:
    """Returns a replica that failed the check and matched the log in a Checkpoint: then the leader of the check is in doubt."""
    for replica in check.replicas:
        verdict, anew = verdicts.get(replica.node), rebuilt(tablespace, replica.node, uuid)
        about_present_copy = anew is None or anew.until < check.after
        if replica.verdict == "Failed" and verdict is not None and verdict.equal and about_present_copy:
            return replica
    return None


def _doubted(
    tablespace: Tablespace | None, nodes: Mapping[str, NodeView | Unknown], uuid: str, known: Mapping[str, Verdict]
) -> Iterable[Verdict]:
    """Returns the leader of the last check that was put in doubt, once it follows: it must not lead again before a Checkpoint compared it.
    While it leads it can't be compared, and a person decides.
    """
    status = tablespace.status if tablespace is not None else None
    if tablespace is None or status is None or status.uuid not in (None, uuid):
        return
    check = remembered_check(tablespace)
    if check is None or check.until is None or (other := contradicting(check, tablespace, uuid, known)) is None:
        return
    if any((node, copy.role) == (check.leader, "follower") for node, copy in copies_of(nodes, uuid)):
        tables, than = other.different_tables or (), f"{other.node}, which equals the log,"
        yield Verdict(check.leader, check.until, equal=False, different_tables=tables, against_leader=True, than=than)


def _was_wrong(tablespace: Tablespace | None, uuid: str, check: TableVerdict) -> bool:
    """Whether the leader of a check was known to differ by then. Its replica was rebuilt since, which ends that verdict."""
    before = rebuilt(tablespace, check.leader, uuid) if tablespace is not None else None
    return before is not None and before.lsn <= check.lsn <= before.until


def _barred(nodes: Mapping[str, NodeView | Unknown], uuid: str) -> Iterable[Verdict]:
    """Returns what nodes remember: a replica that was found different is barred. At the latest LSN that it has, if the node tells none."""
    for node, copy in copies_of(nodes, uuid):
        lsn = copy.barred_until if isinstance(copy.barred_until, tuple) else copy.lsn
        if copy.barred is True and lsn is not None:
            yield Verdict(node, (max(lsn[0], 0), max(lsn[1], 0)), equal=False)  # nothing applied yet is -1


def _brought_back(tablespace: Tablespace | None, uuid: str, bars: Iterable[Verdict], known: Mapping[str, Verdict]) -> Iterable[Verdict]:
    """Returns the bars of replicas that were set aside: they ended then, and stand again, so the volume was put back to an older copy.
    What is `known` of the rebuilt replica does not lift them, so they count for a later LSN.
    """
    for bar in bars:
        before = rebuilt(tablespace, bar.node, uuid) if tablespace is not None else None
        if before is not None and not before.is_about(bar):
            ledger, entry = before.until
            yield replace(bar, lsn=max((ledger, entry + 1), known.get(bar.node, bar).lsn))


def _lifts(verdict: Verdict, bar: Verdict) -> bool:
    """Whether a verdict counts for more than the bar on the node's disk: it knows more of the difference, or is equal at a later LSN."""
    return not verdict.equal or verdict.lsn > bar.lsn


def _about_present_copy(tablespace: Tablespace | None, uuid: str, verdict: Verdict) -> Verdict | None:
    """Returns None for a verdict on a replica that was set aside since."""
    before = rebuilt(tablespace, verdict.node, uuid) if tablespace is not None else None
    if before is None:
        return verdict
    if not before.is_about(verdict):
        return None
    return verdict if verdict.equal else replace(verdict, made_anew=not before.proven)


def judged(nodes: Mapping[str, NodeView | Unknown], uuid: str, verdicts: Mapping[str, Verdict]) -> dict[str, NodeView | Unknown]:
    """Returns the nodes' views, with how their rows differ in the tablespace with this uuid."""
    return {node: view if isinstance(view, Unknown) else _judged(view, uuid, verdicts.get(node)) for node, view in nodes.items()}


def _judged(view: NodeView, uuid: str, verdict: Verdict | None) -> NodeView:
    if verdict is None or verdict.equal:
        return view
    return tuple(replace(copy, differs=verdict.sentence) if copy.uuid == uuid else copy for copy in view)


def replicas_of(tablespace: Tablespace) -> tuple[ReplicaStatus, ...]:
    """Returns the replicas in its status."""
    return tablespace.status.replicas if tablespace.status is not None else ()


def different(verdicts: Mapping[str, Verdict], nodes: Iterable[str]) -> Sequence[Verdict]:
    """Returns the verdicts of these nodes that are different, by name."""
    return [verdicts[node] for node in sorted(nodes) if node in verdicts and not verdicts[node].equal]


def verdicts_on(verdicts: Mapping[str, Verdict], nodes: Collection[str]) -> Mapping[str, Verdict]:
    """Returns the verdicts on these nodes. Files on a node that left can't be read or set aside before it comes back."""
    return {node: verdict for node, verdict in verdicts.items() if node in nodes}


def _remembered(replica: ReplicaStatus) -> Verdict | None:
    if replica.verified_lsn is None or replica.verdict not in ("Equal", "Different"):
        return None
    equal, tables = replica.verdict == "Equal", replica.different_tables or ()
    return Verdict(
        replica.node,
        replica.verified_lsn.position,
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
    return Verdict(found.node, found.lsn.position, found.result == "Equal", found.different_tables or (), at, name)
