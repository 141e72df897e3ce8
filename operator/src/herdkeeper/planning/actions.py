"""What the operator can do, each action with what it needs and nothing else. engine/execute.py does them, one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from herdkeeper.codecs.bookkeeper.cookie import Cookie
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.codecs.zookeeper.membership import Server
from herdkeeper.planning import requeue
from herdkeeper.protocol.log_archive import ExpiryOrder
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json
from herdkeeper.shared.reason import Reason


@dataclass(frozen=True)
class Wait:
    """Why nothing, or nothing more, is done now."""

    reason: Reason
    message: str

    @property
    def sentence(self) -> str:
        """Both, for people."""
        return f"{self.reason}: {self.message}"


class Request(Enum):
    """What a user asks for once, by an annotation."""

    SWITCHOVER = names.SWITCHOVER_ANNOTATION
    RUN_NOW = names.RUN_NOW_ANNOTATION
    FULL_CHECK = names.FULL_CHECK_ANNOTATION

    @property
    def answer_annotation(self) -> str:
        """Where the answer is left."""
        match self:
            case Request.SWITCHOVER:
                return names.SWITCHOVER_ANSWER_ANNOTATION
            case Request.RUN_NOW:
                return names.RUN_NOW_ANSWER_ANNOTATION
            case Request.FULL_CHECK:
                return names.FULL_CHECK_ANSWER_ANNOTATION

    @property
    def answered(self) -> Reason:
        """What the event of an answer is called."""
        match self:
            case Request.SWITCHOVER:
                return Reason.SWITCHOVER_ANSWERED
            case Request.RUN_NOW:
                return Reason.RUN_REQUEST_ANSWERED
            case Request.FULL_CHECK:
                return Reason.FULL_CHECK_ANSWERED


@dataclass(frozen=True)
class Apply:
    """Server-side apply of a full intent. `new`: the object was not seen, so a stranger's object of this name must not be taken over."""

    manifest: Json
    new: bool
    reason: Reason


@dataclass(frozen=True)
class Create:
    """Make an object that is never changed afterwards: a volume claim, a run of a schedule."""

    manifest: Json
    reason: Reason = Reason.CREATING


@dataclass(frozen=True)
class Annotate:
    """Set annotations of a live object (None: take it off), if it is still the one with this uid."""

    kind: str
    name: str
    uid: str
    annotations: dict[str, str | None]
    reason: Reason
    api_version: str = "v1"


@dataclass(frozen=True)
class AddToSecret:
    """Add entries (base64) to a live Secret, if it is still the one with this uid."""

    name: str
    uid: str
    data: dict[str, str] = field(repr=False)


@dataclass(frozen=True)
class Delete:
    """Delete a live object, if it is still the one with this uid; with a resource version, if it is still as it was read."""

    api_version: str
    kind: str
    name: str
    uid: str
    reason: Reason
    resource_version: str | None = None


def deletions(items: Iterable[Json | None], reason: Reason) -> tuple[Delete, ...]:
    """The deletion of each of these live objects that is there and is not being deleted; of what holds data, if it is as it was read."""
    found = (item for item in items if item is not None and not item["metadata"].get("deletionTimestamp"))
    return tuple(
        Delete(
            item["apiVersion"],
            item["kind"],
            item["metadata"]["name"],
            item["metadata"]["uid"],
            reason,
            item["metadata"].get("resourceVersion") if item["kind"] in _HOLDS_DATA else None,
        )
        for item in found
    )


_HOLDS_DATA = ("PersistentVolumeClaim", "Secret")


@dataclass(frozen=True)
class Resize:
    """Let a volume claim ask for more, if it is still the one with this uid."""

    name: str
    uid: str
    size: str


@dataclass(frozen=True)
class SetFinalizer:
    """Put the finalizer on the resource, or take it off. `message` says what that means for the data."""

    present: bool
    reason: Reason
    message: str


@dataclass(frozen=True)
class SetBookieMode:
    """Make a bookie read-only or writable over its admin port, and see that it is. It stays so over a restart."""

    bookie_id: str
    host: str
    read_only: bool
    reason: Reason


@dataclass(frozen=True)
class ChangeMembership:
    """Compare-and-set of ZooKeeper's own membership: `server`, where it is given, joins or changes its role; `leaving` are server ids.

    `version` is that of the membership that was read.
    """

    zookeeper_address: str
    password: str = field(repr=False)
    server: Server | None
    leaving: tuple[int, ...]
    version: int
    reason: Reason
    why: str


@dataclass(frozen=True)
class EnsureZnode:
    """Make a persistent, empty znode and its parents."""

    zookeeper_address: str
    path: str


@dataclass(frozen=True)
class FormatLedgersRoot:
    """Make BookKeeper's metadata root with a new instance id, in one transaction, where nothing is."""

    zookeeper_address: str
    root: str


@dataclass(frozen=True)
class SetRecoveryDelay:
    """Compare-and-set of the seconds that a bookie may be away. BookKeeper copies them from its configuration only once."""

    zookeeper_address: str
    root: str
    seconds: int
    version: int


@dataclass(frozen=True)
class StartBookieAudit:
    """Have BookKeeper's auditor look at all ledgers now, as BookKeeper's `shell triggeraudit` does: write the delay anew."""

    zookeeper_address: str
    root: str
    seconds: int
    version: int
    lost: tuple[str, ...]


@dataclass(frozen=True)
class RemoveCookie:
    """Delete the cookie of a bookie that no ledger names, if the bookie is not registered: nobody can come back under its id."""

    zookeeper_address: str
    root: str
    bookie_id: str


@dataclass(frozen=True)
class RestoreCookie:
    """Write the missing cookie of a bookie that is not registered, where the metadata's instance id is the cookie's. Never over another."""

    zookeeper_address: str
    root: str
    cookie: Cookie


@dataclass(frozen=True)
class DeleteZnodes:
    """Delete a tree of znodes, then those of its parents that are empty."""

    zookeeper_address: str
    root: str


@dataclass(frozen=True)
class CreateTablespace:
    """CREATE TABLESPACE by SQL on the node `via`. `leader` is its only replica at first."""

    herddb: str
    via: str
    name: str
    leader: str
    max_leader_inactivity_millis: int


@dataclass(frozen=True)
class ChangeTablespaceRecord:
    """Compare-and-set of HerdDB's record of a tablespace."""

    zookeeper_address: str
    path: str
    record: TablespaceRecord
    version: int
    why: str
    reason: Reason = Reason.REPLICAS_CHANGED


@dataclass(frozen=True)
class SetLogPin:
    """Compare-and-set of what keeps a tablespace's log: from `lsn` (ledger id, entry id) on; None takes the pin away. `version` is that of
    the pin that was read, None where there was none."""

    zookeeper_address: str
    path: str
    lsn: tuple[int, int] | None
    version: int | None
    why: str


@dataclass(frozen=True)
class SetArchiveExpiry:
    """Compare-and-set of what the archiver may take away; with `order` None nothing any more. `version` is that of what was read, None
    where there was nothing."""

    zookeeper_address: str
    path: str
    order: ExpiryOrder | None
    version: int | None
    why: str


@dataclass(frozen=True)
class CheckpointFollower:
    """Have a follower write its tables to its disk, so that it replays less when it becomes the leader. One that can't goes without."""

    herddb: str
    node: str
    tablespace: str


@dataclass(frozen=True)
class SetCopyAside:
    """Have a SQL node that is no replica of a tablespace any more move what its disk has of it aside, so that its next copy is made anew.

    The node keeps that as evidence, and refuses while it is a replica or still runs the copy. `why`: what is wrong with it.
    """

    herddb: str
    node: str
    tablespace: str
    uuid: str
    why: str


@dataclass(frozen=True)
class BarPromotion:
    """Have a SQL node record on its disk that it must not promote itself, or (`barred` False) that it may again.

    It is about HerdDB's own failover alone: a node that the record names leads all the same. Nothing waits for it: what else is planned is
    done though the node refuses. `why`: what was found out about its copy.
    """

    herddb: str
    node: str
    tablespace: str
    uuid: str
    barred: bool
    why: str


@dataclass(frozen=True)
class WakeNodes:
    """Have SQL nodes act on changed records at once. They notice by themselves too: one that does not answer is no error."""

    herddb: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class AnswerRequest:
    """Take a request, which is an annotation, off a resource of ours if that is still as it was read, and leave the answer."""

    kind: str
    name: str
    resource_version: str
    request: Request
    answer: str


@dataclass(frozen=True)
class CloseLedger:
    """Have a SQL node close the ledger that it writes for a tablespace, and open the next one; nothing when it writes another by now."""

    herddb: str
    node: str
    tablespace: str
    ledger_id: int
    reason: Reason = Reason.DRAINING


@dataclass(frozen=True)
class StartFullCheck:
    """Have the SQL node that leads a tablespace begin to check all tables, unless it does. Writes stand still for `longest_stop_millis` at
    most in one piece."""

    herddb: str
    node: str
    tablespace: str
    longest_stop_millis: int


@dataclass(frozen=True)
class ForgetNode:
    """Delete HerdDB's record of a SQL node that has gone, and its heartbeats, if no tablespace names it."""

    zookeeper_address: str
    herd_root: str
    node: str


@dataclass(frozen=True)
class DropTablespace:
    """DROP TABLESPACE by SQL on the node `via`."""

    herddb: str
    via: str
    name: str


@dataclass(frozen=True)
class DeleteLogs:
    """Delete the ledgers of HerdDB's ledger lists, then the lists. `uuids`: the tablespaces; None: all of the database.

    HerdDB's DROP leaves them behind.
    """

    zookeeper_address: str
    ledgers_root: str
    herd_root: str
    uuids: tuple[str, ...] | None


Action = (
    Apply
    | Create
    | Annotate
    | AddToSecret
    | Delete
    | SetFinalizer
    | SetBookieMode
    | ChangeMembership
    | EnsureZnode
    | FormatLedgersRoot
    | SetRecoveryDelay
    | StartBookieAudit
    | RemoveCookie
    | RestoreCookie
    | Resize
    | DeleteZnodes
    | CreateTablespace
    | ChangeTablespaceRecord
    | SetLogPin
    | SetArchiveExpiry
    | CheckpointFollower
    | SetCopyAside
    | BarPromotion
    | WakeNodes
    | AnswerRequest
    | CloseLedger
    | StartFullCheck
    | ForgetNode
    | DropTablespace
    | DeleteLogs
)


def soonest(*seconds: float | None) -> float | None:
    """The soonest of several times to requeue; None when there is none."""
    return min((each for each in seconds if each is not None), default=None)


@dataclass(frozen=True)
class Plan:
    """Actions in order, then perhaps a reason to wait. `requeue_after_seconds`: when to look again though no event tells of a change.
    `later` and `blockers` are words for a plan that is shown instead of executed: what follows where a procedure has several steps, and
    what it would wait for.
    `needs_ledgers`: a step can't be decided without the metadata of all ledgers; plan again with it.
    `notes` are fields of the status that the plan decides. `shown` is what another controller does at the same time.
    """

    actions: tuple[Action, ...] = ()
    wait: Wait | None = None
    requeue_after_seconds: float | None = field(default=None)
    later: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    needs_ledgers: bool = False
    notes: Mapping[str, Any] = field(default_factory=dict)
    shown: tuple[Action, ...] = ()

    @staticmethod
    def waiting(reason: Reason, message: str, look_again_seconds: float = requeue.PENDING) -> Plan:
        """A plan that only waits."""
        return Plan((), Wait(reason, message), look_again_seconds)
