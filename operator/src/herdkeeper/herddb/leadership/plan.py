"""Plans the leaders of all tablespaces of a HerdDBCluster: turns the decisions of decision.py into actions.

Only the leadership controller moves leaders. A Tablespace requests a leader by annotation or preference; the cluster's status names the
relieved nodes.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from herdkeeper.api import HerdDBCluster, Tablespace
from herdkeeper.api.tablespace import Failover
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.leadership.decision import (
    Blocked,
    Decision,
    Keep,
    Move,
    Node,
    Postponed,
    Refused,
    Situation,
    decide,
    why_no_ledger,
    why_not_leading,
)
from herdkeeper.herddb.leadership.hand_over import Deadline, HandOver, PendingTakeOver, serves_seconds, turn_key, why_waiting
from herdkeeper.herddb.leadership.moves import TablespaceMove, move_actions
from herdkeeper.herddb.leadership.requeue import SOON_SECONDS, requeue_after_seconds
from herdkeeper.herddb.leadership.services import declaring, leader_services
from herdkeeper.herddb.leadership.take_over import HELD_SECONDS, NOTHING_KNOWN, TAKE_OVER_SECONDS, MissedTakeOver, TakeOvers, take_overs
from herdkeeper.herddb.state.cluster import VersionedRecord
from herdkeeper.herddb.state.fleet import SqlFleet
from herdkeeper.herddb.state.log_store import LogStore
from herdkeeper.herddb.validate import herddb_refusals
from herdkeeper.planning.actions import Action, Annotate, AnswerRequest, Request, Wait, soonest
from herdkeeper.shared import names
from herdkeeper.shared.objects import stopping, why_gone, why_stopping
from herdkeeper.shared.paused import paused_by
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

TURN_SECONDS = 0.5
"""Interval of checks whether the next tablespace's turn has come: about the duration of a boot, which needs the CPU."""


@dataclass(frozen=True)
class MoveRules:
    """Rules for moving leaders.

    `why_no_writing` is why no new leader could write now, None if one could. `relieved` are the relieved nodes with reasons.
    `only_lost`: ignore wishes; replace only leaders that have ended, hang or are about to end.
    """

    why_no_writing: str | Unknown | None
    relieved: Mapping[str, str] = field(default_factory=dict)
    only_lost: bool = False
    take_overs: TakeOvers = NOTHING_KNOWN


@dataclass(frozen=True)
class Case:
    """A tablespace and its decision. `asking` is the resource whose request is answered, or None."""

    found: VersionedRecord
    situation: Situation
    asking: Tablespace | None
    decision: Decision


class FollowUp(NamedTuple):
    """What says who leads a tablespace, due once its move is done."""

    tablespace: str
    actions: tuple[Action, ...]


@dataclass(frozen=True)
class LeadershipPlan:
    """`moves` cover several tablespaces; a failed one stops no other. `after` follows them, for each tablespace that was moved. `beside`
    follows in any case: its groups are those of tablespaces that are not moved, and the marks of nodes. `wait` is why a leader that should
    be replaced is not. `later` tells, as sentences, which leaders wait for their turn.
    """

    moves: tuple[Action, ...] = ()
    after: tuple[FollowUp, ...] = ()
    wait: Wait | None = None
    requeue_after_seconds: float | None = None
    later: tuple[str, ...] = ()
    beside: tuple[tuple[Action, ...], ...] = ()

    @property
    def actions(self) -> tuple[Action, ...]:
        """All actions, in order."""
        return (*self.moves, *itertools.chain(*(each.actions for each in self.after), *self.beside))


def plan_leadership(fleet: SqlFleet) -> LeadershipPlan:
    """Returns what is due for the leaders of a cluster's tablespaces.

    A refused spec, or a deletion that waits, blocks wishes, but not the service of running nodes: then only lost leaders are replaced. Of a
    deleted cluster whose nodes are being taken down none is.
    """
    log, deleted = fleet.log, fleet.cluster.metadata.deletion_timestamp is not None
    if log is None or (deleted and fleet.are_taken_down):
        return LeadershipPlan()
    why_no_writing = fleet.why_no_ledger_can_open
    if deleted or any(herddb_refusals(fleet.cluster, fleet.bookkeeper)):
        return plan_leaders(fleet, log, MoveRules(why_no_writing, only_lost=True))
    relieved = fleet.cluster.status.relieved_nodes if fleet.cluster.status is not None else ()
    return plan_leaders(fleet, log, MoveRules(why_no_writing, {each.node: each.reason for each in relieved}))


def plan_leaders(fleet: SqlFleet, log: LogStore, rules: MoveRules) -> LeadershipPlan:
    """Returns the due moves, the Services that follow them, answers to requests, and why a leader that should be replaced is not."""
    if isinstance(fleet.records, Unknown):
        # No event reports that ZooKeeper answers again, and the leader may be on the machine of a lost member.
        return LeadershipPlan(requeue_after_seconds=SOON_SECONDS)
    records = [found for _, found in sorted(fleet.records.items(), key=lambda pair: turn_key(pair[0]))]
    rules = replace(rules, take_overs=take_overs(fleet.cluster.metadata.annotations, records, fleet.nodes, _time(fleet)))
    cases, later = _take_turns(fleet, [_case(fleet, found, rules) for found in records])
    due = [TablespaceMove(case.found, case.decision) for case in cases if isinstance(case.decision, Move)]
    blocked = [f"{case.found.record.name}: {case.decision.why}" for case in cases if isinstance(case.decision, Blocked)]
    moves = move_actions(fleet.cluster, log, due)
    moved = [FollowUp(case.found.record.name, _follow_up(fleet, case)) for case in cases if isinstance(case.decision, Move)]
    after = tuple(each for each in moved if each.actions)
    groups = (*(_follow_up(fleet, case) for case in cases if not isinstance(case.decision, Move)), _marks(fleet.cluster, cases, rules))
    beside = tuple(filter(None, groups))
    again = soonest(*(requeue_after_seconds(case.situation, case.decision) for case in cases), TURN_SECONDS if later else None)
    return LeadershipPlan(
        moves,
        after,
        Wait(Reason.NO_LEADER, ". ".join(blocked)) if blocked else None,
        soonest(again, SOON_SECONDS if moves or after or beside else None),
        later,
        beside,
    )


def _follow_up(fleet: SqlFleet, case: Case) -> tuple[Action, ...]:
    """Returns what says who leads a tablespace: its Service, and then the answer to a request."""
    leader = case.decision.to if isinstance(case.decision, Move) else case.found.record.leader
    # Creating a Service is not part of a move, and must not block one, e.g. because of a quota.
    services = (apply for apply in leader_services(fleet, [replace(case.found.record, leader=leader)]) if not apply.new)
    return (*services, *_answer(case.asking, case.decision))


def _case(fleet: SqlFleet, found: VersionedRecord, rules: MoveRules) -> Case:
    declared = declaring(fleet, found.record.name)
    asking = None if rules.only_lost or declared is None or paused_by(declared.metadata.annotations) else declared
    # the failover times are no change: they also apply to a paused resource
    failover = declared.spec.failover if declared is not None else Failover()
    situation = Situation(
        record=found.record,
        nodes=_nodes(fleet, found.record, rules),
        why_no_writing=rules.why_no_writing,
        changed_at=found.changed_at,
        now=_time(fleet),
        requested=asking.metadata.annotations.get(names.SWITCHOVER_ANNOTATION) if asking is not None else None,
        preferred=_preferred(fleet, asking) if asking is not None else None,
        hung_seconds=failover.hung_leader_seconds,
        relieve=asking is not None,
    )
    return Case(found, situation, asking, decide(situation))


def _take_turns(fleet: SqlFleet, wanted: Sequence[Case]) -> tuple[list[Case], tuple[str, ...]]:
    """Returns the cases that are executed now, and sentences about those left for later: a serving leader stays until its tablespace's
    turn.
    """
    leaving = {case.found.record.name: each for case in wanted if (each := _hand_over(fleet, case)) is not None}
    waiting = why_waiting(list(leaving.values()), [pending for case in wanted for pending in _pending_take_over(case)])
    later = tuple(f"Moving the leadership of {name} to {leaving[name].to} later, since {why}" for name, why in waiting.items())
    return [_in_turn(case, leaving.get(case.found.record.name), waiting) for case in wanted], later


def _in_turn(case: Case, hand_over: HandOver | None, waiting: Mapping[str, str]) -> Case:
    record, decision = case.found.record, case.decision
    if hand_over is None or not isinstance(decision, Move):
        return case
    if record.name in waiting:
        return replace(case, decision=Keep(f"{record.leader} still leads: {waiting[record.name]}", settled=False))
    in_time = not hand_over.deadline.at_once
    return replace(case, decision=replace(decision, checkpoint_first=decision.checkpoint_first and in_time))


def _hand_over(fleet: SqlFleet, case: Case) -> HandOver | None:
    record, decision = case.found.record, case.decision
    if not isinstance(decision, Move) or not decision.in_turn:
        return None
    ending = stopping(fleet.objects.get("Pod", record.leader))
    if ending is None:
        return HandOver(record.name, decision.to)
    serves_until = min(ending.asked_at + serves_seconds(fleet.cluster), ending.killed_at)
    return HandOver(record.name, decision.to, Deadline(fleet.now - ending.asked_at, serves_until - fleet.now))


def _pending_take_over(case: Case) -> tuple[PendingTakeOver, ...]:
    """Returns a tablespace that its leader is booting, or will."""
    record, situation = case.found.record, case.situation
    match case.decision:
        case Move(to, in_turn=False):
            return (PendingTakeOver(record.name, to, 0.0),)
        case Keep() if situation.changed_at is not None and why_not_leading(situation.nodes[record.leader], record) is not None:
            return (PendingTakeOver(record.name, record.leader, situation.now - situation.changed_at),)
        case _:
            return ()


def _marks(cluster: HerdDBCluster, cases: Sequence[Case], rules: MoveRules) -> tuple[Annotate, ...]:
    """Marks nodes that failed to take over, and unmarks those that lead again. They follow the moves: a lost mark costs one
    more attempt.
    """
    missed = {case.found.record.leader: found for case in cases if (found := _missed_take_over(case, rules.take_overs.missed)) is not None}
    obsolete = () if rules.only_lost else rules.take_overs.obsolete
    return (
        *(_mark(cluster, node, found.text, Reason.DID_NOT_LEAD) for node, found in sorted(missed.items())),
        *(_mark(cluster, node, None, Reason.LEADS_AGAIN) for node in obsolete if node not in missed),
    )


def _mark(cluster: HerdDBCluster, node: str, text: str | None, reason: Reason) -> Annotate:
    return Annotate.on(cluster, {f"{names.DID_NOT_LEAD_PREFIX}{node}": text}, reason)


def _missed_take_over(case: Case, marked: Mapping[str, MissedTakeOver]) -> MissedTakeOver | None:
    """Returns the leader's failed take-over if it is not marked yet. Nodes that are stopping or could not open a ledger don't count."""
    record, situation = case.found.record, case.situation
    leader = situation.nodes.get(record.leader)
    if leader is None or leader.leaving is not None or situation.changed_at is None or why_no_ledger(situation) is not None:
        return None
    age = situation.now - situation.changed_at
    lost = isinstance(case.decision, Move) and case.decision.leader_lost
    late = age >= TAKE_OVER_SECONDS and why_not_leading(leader, record) is not None
    before = marked.get(record.leader)
    if not 0 <= age < HELD_SECONDS or not (lost or late) or (before is not None and before.at >= int(situation.changed_at)):
        return None
    return MissedTakeOver(record.name, int(situation.changed_at), before.times + 1 if before is not None else 1)


def _time(fleet: SqlFleet) -> float:
    """By ZooKeeper's clock, or by the operator's if that is unknown."""
    return fleet.now if fleet.zookeeper.now is None else fleet.zookeeper.now


def _nodes(fleet: SqlFleet, record: TablespaceRecord, rules: MoveRules) -> dict[str, Node]:
    """Returns the state of each node of the cluster for one tablespace."""
    found = {}
    for name in fleet.present:
        pod = fleet.objects.get("Pod", name)
        # what only relieved nodes hold can't be led elsewhere
        relieved = rules.relieved.get(name) if any(other not in rules.relieved for other in record.replicas) else None
        heartbeat = fleet.heartbeats.get(record.name, {}).get(name)
        found[name] = Node(
            gone=why_gone(pod),
            leaving=why_stopping(pod),
            relieved=relieved,
            held_back=rules.take_overs.held_back.get(name),
            late=name in rules.take_overs.late,
            copy=fleet.replica_on(name, record.name),
            running_since=fleet.zookeeper.registered.get(name),
            silent_seconds=fleet.silent_seconds.get(name),
            heartbeat=heartbeat,
            report=fleet.reports.get(name),
        )
    return found


def _preferred(fleet: SqlFleet, tablespace: Tablespace) -> str | None:
    """Returns the node that gets its leadership back. A node that is yet to be restarted must wait: it would be relieved again."""
    preferred = tablespace.spec.preferred_leader if tablespace.spec.failback == "WhenHealthy" else None
    revision = fleet.objects.revision(fleet.named.stateful_set)
    restarts = preferred is not None and revision is not None and fleet.objects.outdated(preferred, revision)
    return None if restarts else preferred


def _answer(tablespace: Tablespace | None, decision: Decision) -> tuple[Action, ...]:
    """A request is answered once: with what was done, what is so already, or why not."""
    if tablespace is None or names.SWITCHOVER_ANNOTATION not in tablespace.metadata.annotations:
        return ()
    match decision:
        case Move(to, why):
            asked = tablespace.metadata.annotations[names.SWITCHOVER_ANNOTATION]
            answer = f"{'done' if to == asked else 'overtaken'}: led by {to}, since {why}"
        case Keep(why):
            answer = f"done: {why}"
        case Refused(why) | Blocked(why):
            answer = f"refused: {why}"
        case Postponed():
            return ()
    return (AnswerRequest.on(tablespace, Request.SWITCHOVER, answer),)
