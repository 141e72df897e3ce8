"""The operator on a modelled log: what it observes is put together from the model, what it does are the project's own plans.

Each call of a plan is remembered by what was seen, since a model sees the same many times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple, assert_never

from modelled_nodes import Log, Lsn, has_all_after
from situations import live, noted, objects, pods, quickstart, ready, with_metadata, with_spec, with_status
from test_plan_herddb import LOG as LOG_STORE
from test_plan_herddb import SETTLED as DATABASE_SETTLED
from test_plan_log_pin import INSTANCE, checkpoint
from test_plan_tablespace import SETTLED as TABLESPACE_SETTLED

from herdkeeper.api import Checkpoint, Tablespace
from herdkeeper.api.checkpoint import CheckpointStatus, ComparisonStatus
from herdkeeper.api.checkpoint import Lsn as StatusLsn
from herdkeeper.api.tablespace import ReplicaStatus, TablespaceLog
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.leadership.plan import MoveRules, plan_leaders
from herdkeeper.herddb.log.seen import LogPin
from herdkeeper.herddb.state.cluster import NodeTablespace, NodeView, VersionedRecord
from herdkeeper.herddb.tablespace.build import build_leader_service
from herdkeeper.herddb.tablespace.judged_nodes import Declared
from herdkeeper.herddb.tablespace.plan import plan_tablespace
from herdkeeper.herddb.tablespace.status import summarize_tablespace
from herdkeeper.herddb.tablespace.verdicts import verdicts_in_force
from herdkeeper.planning.actions import Annotate, BarPromotion, ChangeTablespaceRecord, SetCopyAside, SetLogPin
from herdkeeper.protocol.log_pin import CHECKPOINT
from herdkeeper.shared import names
from herdkeeper.shared.unknown import Unknown

UUID = "a-uuid"
NAME = "flights"
ROLES = {"leader": "leader", "rolling": "leader", "follower": "follower", "refusing": "follower", "failed": "failed", "none": "stopped"}
"""What a node says of its copy. One that boots says so."""
SETTLED_ROLES = ("leader", "follower")
HEARD = 2000.0
"""A time: every pause after a change is over."""


class Finding(NamedTuple):
    """A Checkpoint compared a follower with the log; or its own node remembers (`compared` False)."""

    node: int
    lsn: Lsn
    equal: bool
    compared: bool = True


class Resource(NamedTuple):
    """The Tablespace as it is stored. `verdicts` are those of its status, `marks` its annotations on copies that were made anew;
    `known`: its status names the tablespace. `readable`: the operator can make sense of it."""

    verdicts: tuple[Finding, ...] = ()
    marks: tuple[tuple[int, str], ...] = ()
    known: bool = True
    readable: bool = True


class Said(NamedTuple):
    """What a node says of its copy."""

    role: str
    lsn: Lsn | None
    checkpoint: Lsn
    recoverable: bool
    barred: Lsn | None


class Seen(NamedTuple):
    """All that the operator's plans can depend on."""

    leader: int
    replicas: tuple[int, ...]
    copies: tuple[Said | str | None, ...]
    """What each node says; why it says nothing; None when it has no copy."""
    resource: Resource | None
    finding: Finding | None
    verified: Lsn | None
    pin: Lsn | None
    keeps: bool


@dataclass(frozen=True)
class Lead:
    """A node gets the leadership."""

    node: int


@dataclass(frozen=True)
class Replicas:
    """The list of replicas becomes another one."""

    nodes: tuple[int, ...]
    version: int


@dataclass(frozen=True)
class Bar:
    """A node is told that it must not make itself the leader, with the LSN up to which an equal verdict changes nothing; None: it may."""

    node: int
    until: Lsn | None


@dataclass(frozen=True)
class Aside:
    """A node moves its copy aside."""

    node: int


@dataclass(frozen=True)
class Marks:
    """The Tablespace's annotation on a node."""

    node: int
    text: str


@dataclass(frozen=True)
class Pin:
    """The operator's pin on the log for Checkpoints."""

    lsn: Lsn | None


@dataclass(frozen=True)
class Status:
    """The Tablespace's status is written."""

    verdicts: tuple[Finding, ...]


Order = Lead | Replicas | Bar | Aside | Marks | Pin | Status


GONE, UNHEARD = "gone", "unheard"


def seen_of(log: Log, resource: Resource | None, finding: Finding | None, kept: tuple[Lsn | None, bool]) -> Seen:
    """What the operator sees. `kept`: the newest verified Checkpoint, and whether the log is kept for it."""
    verified, keeps = kept
    copies = tuple(_copy(log, number) for number in range(len(log.nodes)))
    return Seen(log.leader, log.replicas, copies, resource, finding, verified, log.pin, keeps)


def _copy(log: Log, number: int) -> Said | str | None:
    node = log.nodes[number]
    if not node.up:
        return GONE
    if not node.heard:
        return UNHEARD
    if node.role == "none" and number not in (log.leader, *log.replicas):
        return None
    role = "booting" if node.role == "none" else ROLES.get(node.role, "booting")
    lsn = node.lsn if role in SETTLED_ROLES else None
    return Said(role, lsn, node.disk_lsn, has_all_after(log.listing, node.disk_lsn), node.barred)


def for_leaders(seen: Seen) -> Seen:
    """What plans for leaders can depend on. Where nobody knows of rows that differ, of positions only their order counts, since none is
    ever far behind here."""
    seen = seen._replace(verified=None, pin=None, keeps=False)
    if seen.finding is not None or (seen.resource is not None and (seen.resource.verdicts or seen.resource.marks)):
        return seen
    said = [each for each in seen.copies if isinstance(each, Said)]
    order = {lsn: (0, rank) for rank, lsn in enumerate(sorted({lsn for each in said for lsn in (each.lsn, each.checkpoint) if lsn}))}
    copies = (
        each._replace(lsn=order.get(each.lsn), checkpoint=order[each.checkpoint]) if isinstance(each, Said) else each
        for each in seen.copies
    )
    return seen._replace(copies=tuple(copies))


def pod_of(number: int) -> str:
    return DATABASE.names.pod(number)


def _number_of(pod: str) -> int:
    return int(pod.rpartition("-")[2])


DATABASE = ready(quickstart("HerdDBCluster"))
DECLARED = quickstart("Tablespace")


@cache
def known_to_differ(resource: Resource) -> frozenset[int]:
    """The nodes whose present copies differ, as the stored Tablespace says, whether or not the operator can read it."""
    verdicts = verdicts_in_force(_declared(resource), UUID)
    return frozenset(_number_of(pod) for pod, verdict in verdicts.items() if not verdict.equal)


@cache
def lead_orders(seen: Seen) -> tuple[Lead, ...]:
    """What the HerdDBCluster's key does."""
    database = with_spec(DATABASE, replicas=len(seen.copies))
    declared = (Declared(NAME, _tablespace(seen), seen.resource.readable),) if seen.resource is not None else ()
    unheard = [pod_of(number) for number, copy in enumerate(seen.copies) if copy == UNHEARD]
    beats = {pod_of(number): HEARD - (100.0 if copy in (GONE, UNHEARD) else 0.0) for number, copy in enumerate(seen.copies)}
    running = pods(pod_of(number) for number, copy in enumerate(seen.copies) if copy != GONE)
    pod_free = {key: item for key, item in DATABASE_SETTLED.objects.items.items() if key[0] != "Pod"}
    observed = replace(
        DATABASE_SETTLED,
        cluster=database,
        objects=objects(pod_free, running, live((build_leader_service(DECLARED, pod_of(seen.leader)),))),
        records={NAME: VersionedRecord(_record(seen), 0, 1000.0)},
        nodes=_nodes(seen),
        declared=declared,
        checkpoints=_checkpoints(seen),
        silent_seconds=dict.fromkeys(unheard, 100.0),
        heartbeats={NAME: beats},
        now=HEARD,
    )
    actions = plan_leaders(observed, LOG_STORE, MoveRules(None)).actions
    return tuple(Lead(_number_of(action.record.leader)) for action in actions if isinstance(action, ChangeTablespaceRecord))


@cache
def adjusting_orders(seen: Seen) -> tuple[Order, ...]:
    """What the Tablespace's key does, in order, and what it writes into the status at the end."""
    checkpoints = _checkpoints(seen)
    observed = replace(
        TABLESPACE_SETTLED,
        tablespace=_tablespace(seen),
        herddb=with_spec(DATABASE, replicas=len(seen.copies)),
        record=VersionedRecord(_record(seen), 0),
        nodes=_nodes(seen),
        checkpoints=checkpoints,
        log_pin=LogPin(seen.pin, 0) if seen.pin is not None else None,
        instance_id=INSTANCE,
        credentials=None,
    )
    orders = [_order(action) for action in plan_tablespace(observed, "spark:1").actions]
    status = summarize_tablespace(observed).fields["replicas"]
    return (*(order for order in orders if order is not None), Status(tuple(filter(None, map(_stored, status)))))


def _order(action: object) -> Order | None:
    """None for what does not touch data, such as the connection's Secret, and for pins that are not modelled."""
    match action:
        case ChangeTablespaceRecord(record=record):
            return Replicas(tuple(map(_number_of, record.replicas)), 0)
        case BarPromotion(node=node, barred=barred, until=until):
            return Bar(_number_of(node), until if barred else None)
        case SetCopyAside(node=node):
            return Aside(_number_of(node))
        case Annotate(annotations=annotations):
            ((name, text),) = annotations.items()
            assert name.startswith(names.SET_ASIDE_PREFIX)
            assert text is not None
            return Marks(_number_of(name.removeprefix(names.SET_ASIDE_PREFIX)), text)
        case SetLogPin(path=path, lsn=lsn) if path.endswith(f"/{CHECKPOINT}"):
            return Pin(lsn)
        case _:
            return None


def _stored(replica: dict[str, Any]) -> Finding | None:
    if replica.get("verdict") not in ("Equal", "Different"):
        return None
    lsn = replica["verifiedLsn"]
    return Finding(_number_of(replica["node"]), (lsn["ledgerId"], lsn["entryId"]), replica["verdict"] == "Equal", "verifiedBy" in replica)


def _record(seen: Seen) -> TablespaceRecord:
    millis = DECLARED.spec.failover.max_leader_inactivity_seconds * 1000
    return TablespaceRecord(UUID, NAME, pod_of(seen.leader), tuple(map(pod_of, seen.replicas)), 1, millis)


def _nodes(seen: Seen) -> dict[str, NodeView | Unknown]:
    said: dict[str, NodeView | Unknown] = {}
    for number, copy in enumerate(seen.copies):
        match copy:
            case None:
                said[pod_of(number)] = ()
            case str():
                said[pod_of(number)] = Unknown("silence")
            case Said(role, lsn, disk, recoverable, barred):
                ready_ = role in SETTLED_ROLES
                said[pod_of(number)] = (
                    NodeTablespace(NAME, UUID, role, ready_, lsn, None, disk, recoverable, barred=barred is not None, barred_until=barred),
                )
            case _:
                assert_never(copy)
    return said


def _tablespace(seen: Seen) -> Tablespace:
    assert seen.resource is not None
    return with_spec(_declared(seen.resource), replicas=len(seen.copies), log=TablespaceLog(keep_until_checkpoint=seen.keeps))


def _declared(resource: Resource) -> Tablespace:
    marks = {f"{names.SET_ASIDE_PREFIX}{pod_of(number)}": text for number, text in resource.marks}
    marked = noted(with_metadata(DECLARED, annotations=marks), UUID)
    if not resource.known:
        return with_status(marked)
    replicas = tuple(
        ReplicaStatus(
            node=pod_of(each.node),
            role="follower",
            verdict="Equal" if each.equal else "Different",
            verified_lsn=_lsn(each.lsn),
            verified_by="found" if each.compared else None,
        )
        for each in resource.verdicts
    )
    return with_status(marked, uuid=UUID, replicas=replicas)


def _checkpoints(seen: Seen) -> tuple[Checkpoint, ...]:
    found = [checkpoint("kept", seen.verified)] if seen.verified is not None else []
    if seen.finding is not None:
        node, lsn, equal, _ = seen.finding
        compared = ComparisonStatus(node=pod_of(node), tablespace_uuid=UUID, lsn=_lsn(lsn), result="Equal" if equal else "Different")
        found.append(checkpoint("compared", lsn).model_copy(update={"status": CheckpointStatus(comparison=compared)}))
    return tuple(found)


def _lsn(lsn: Lsn) -> StatusLsn:
    return StatusLsn(ledger_id=lsn[0], entry_id=lsn[1])
