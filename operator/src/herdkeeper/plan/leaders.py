"""The leaders of all tablespaces of a HerdDBCluster: what plan/leadership.py decides for each, as actions.

Only the cluster's own key moves leaders; a Tablespace asks, by its annotation or its preference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from herdkeeper.api import HerdDBCluster, Tablespace
from herdkeeper.api.tablespace import Failover
from herdkeeper.build.log_store import LogStore
from herdkeeper.domain import names
from herdkeeper.domain.left_alone import left_alone_by
from herdkeeper.domain.observed.herddb import HerdDBObserved
from herdkeeper.domain.observed.objects import why_gone, why_leaving
from herdkeeper.domain.observed.tablespace_record import VersionedRecord
from herdkeeper.domain.reason import Reason
from herdkeeper.domain.sql_nodes import present_nodes
from herdkeeper.domain.unknown import Unknown
from herdkeeper.formats.herddb_tablespace import TablespaceRecord
from herdkeeper.plan.action import Action, AnswerRequest, Plan, Request, Wait, soonest
from herdkeeper.plan.leader_services import declaring, leader_services
from herdkeeper.plan.leadership import Blocked, Decision, Keep, Move, Node, Refused, Situation, decide
from herdkeeper.plan.moves import DueMove, move_actions
from herdkeeper.plan.next_look import SOON_SECONDS, next_look


@dataclass(frozen=True)
class Terms:
    """On what terms leaders are moved. `no_writing` is why no new leader could write now, None when one could; `leave` are the nodes that
    shall lead nothing, each with the reason. `only_lost`: nobody's wish counts, only leaders that have ended, hang or are about to end are
    replaced.
    """

    no_writing: str | Unknown | None
    leave: Mapping[str, str] = field(default_factory=dict)
    only_lost: bool = False


def plan_leaders(cluster: HerdDBCluster, seen: HerdDBObserved, log: LogStore, terms: Terms) -> Plan:
    """The moves that are due, the Services that follow them, the answers to requests, and why a leader that should be left is not."""
    if isinstance(seen.records, Unknown):
        # No event tells that ZooKeeper answers again, and the leader may be on the machine that took a member of it along.
        return Plan(look_again_seconds=SOON_SECONDS, look_anyway_seconds=SOON_SECONDS)
    moves: list[DueMove] = []
    answers: list[Action] = []
    led: list[TablespaceRecord] = []
    blocked: list[str] = []
    again: list[float | None] = []
    for name, found in sorted(seen.records.items()):
        asking = None if terms.only_lost else resource_of(seen, name)
        situation = _situation(cluster, seen, found, asking, terms)
        decision = decide(situation)
        again.append(next_look(situation, decision))
        moves += [(found, decision)] if isinstance(decision, Move) else []
        answers += _answer(asking, decision)
        led.append(replace(found.record, leader=decision.to) if isinstance(decision, Move) else found.record)
        if isinstance(decision, Blocked):
            blocked.append(f"{name}: {decision.why}")
    # A Service that has yet to be made is no part of a move, and must not hold one up, e.g. by a quota.
    services = (apply for apply in leader_services(seen, led) if not apply.new)
    actions = (*move_actions(cluster, log, moves), *services, *answers)
    return Plan(
        actions,
        Wait(Reason.NO_LEADER, ". ".join(blocked)) if blocked else None,
        look_again_seconds=soonest(*again, SOON_SECONDS if actions else None),
        look_anyway_seconds=soonest(*again),
    )


def resource_of(seen: HerdDBObserved, name: str) -> Tablespace | None:
    """The resource that declares a tablespace; None when there is none, or it shall be left alone."""
    first = declaring(seen, name)
    return None if first is not None and left_alone_by(first.metadata) else first


def nodes_of(cluster: HerdDBCluster, seen: HerdDBObserved, record: TablespaceRecord, leave: Mapping[str, str]) -> dict[str, Node]:
    """What is known of each node of the cluster, with regard to one tablespace."""
    found = {}
    for name in present_nodes(cluster, seen.objects):
        pod = seen.objects.get("Pod", name)
        view = seen.nodes.get(name, Unknown("it was not asked"))
        copy = view if isinstance(view, Unknown) else next((each for each in view if each.name == record.name), None)
        # what only leaving nodes have can't be led elsewhere
        leaves = leave.get(name) if any(other not in leave for other in record.replicas) else None
        heartbeat = seen.heartbeats.get(record.name, {}).get(name)
        found[name] = Node(
            gone=why_gone(pod),
            leaving=why_leaving(pod),
            relieved=leaves,
            copy=copy,
            running_since=seen.zookeeper.registered.get(name),
            silent_seconds=seen.silent_seconds.get(name),
            heartbeat=heartbeat,
            report=seen.reports.get(name),
        )
    return found


def _situation(
    cluster: HerdDBCluster, seen: HerdDBObserved, found: VersionedRecord, tablespace: Tablespace | None, terms: Terms
) -> Situation:
    """`tablespace` is the resource whose wishes count; None when nobody's do."""
    declared = declaring(seen, found.record.name)
    spec = tablespace.spec if tablespace is not None else None
    # how patient to be is no change: it holds for one that is left alone, too
    failover = declared.spec.failover if declared is not None else Failover()
    return Situation(
        record=found.record,
        nodes=nodes_of(cluster, seen, found.record, terms.leave),
        no_writing=terms.no_writing,
        changed_at=found.changed_at,
        now=seen.now if seen.zookeeper.now is None else seen.zookeeper.now,
        requested=tablespace.metadata.annotations.get(names.SWITCHOVER_ANNOTATION) if tablespace is not None else None,
        preferred=spec.preferred_leader if spec is not None and spec.failback == "WhenHealthy" else None,
        hung_seconds=failover.hung_leader_seconds,
        relieve=tablespace is not None,
    )


def _answer(tablespace: Tablespace | None, decision: Decision) -> tuple[Action, ...]:
    """A request is answered once: by what was done, by what is so already, or by why not."""
    if tablespace is None or names.SWITCHOVER_ANNOTATION not in tablespace.metadata.annotations:
        return ()
    match decision:
        case Move(to, why):
            asked = tablespace.metadata.annotations[names.SWITCHOVER_ANNOTATION]
            answer = f"{'done' if to == asked else 'overtaken'}: led by {to}, since {why}"
        case Keep(why):
            answer = f"done: {why}"
        case Refused(why):
            answer = f"refused: {why}"
        case Blocked(why):
            answer = f"refused: {why}"
    metadata = tablespace.metadata
    return (AnswerRequest(tablespace.KIND, metadata.name, metadata.resource_version, Request.SWITCHOVER, answer),)
