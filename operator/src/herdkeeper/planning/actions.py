"""The actions of the operator, each with only what it needs. engine/execute.py executes them one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from herdkeeper.api.resource import API_VERSION, Resource
from herdkeeper.certificates.access import RootAccess
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
    """Why a plan stops here for now."""

    reason: Reason
    message: str

    @property
    def sentence(self) -> str:
        return f"{self.reason}: {self.message}"


class Request(Enum):
    """A one-off request that a user makes with an annotation."""

    SWITCHOVER = names.SWITCHOVER_ANNOTATION, names.SWITCHOVER_ANSWER_ANNOTATION, Reason.SWITCHOVER_ANSWERED
    RUN_NOW = names.RUN_NOW_ANNOTATION, names.RUN_NOW_ANSWER_ANNOTATION, Reason.RUN_REQUEST_ANSWERED
    FULL_CHECK = names.FULL_CHECK_ANNOTATION, names.FULL_CHECK_ANSWER_ANNOTATION, Reason.FULL_CHECK_ANSWERED
    ROLL_AUTHORITIES = names.ROLL_AUTHORITIES_ANNOTATION, names.ROLL_AUTHORITIES_ANSWER_ANNOTATION, Reason.AUTHORITY_ROLL_ANSWERED

    def __init__(self, annotation: str, answer_annotation: str, answered: Reason) -> None:
        """`answer_annotation` holds the answer, which an event with the reason `answered` reports."""
        self.annotation = annotation
        self.answer_annotation = answer_annotation
        self.answered = answered


@dataclass(frozen=True)
class Apply:
    """Server-side apply of a full intent. With `new`, the object was not seen, and an unrelated object of this name must not be adopted."""

    manifest: Json
    new: bool
    reason: Reason


@dataclass(frozen=True)
class Create:
    """Create an object that never changes afterwards, such as a volume claim or a run of a schedule."""

    manifest: Json
    reason: Reason = Reason.CREATING


@dataclass(frozen=True)
class Annotate:
    """Set annotations of a live object, if its uid still matches. None removes an annotation."""

    kind: str
    name: str
    uid: str
    annotations: dict[str, str | None]
    reason: Reason
    api_version: str = "v1"

    @staticmethod
    def on(resource: Resource, annotations: dict[str, str | None], reason: Reason) -> Annotate:
        """Returns the action on a resource of ours."""
        return Annotate(resource.KIND, resource.metadata.name, resource.metadata.uid, annotations, reason, API_VERSION)


@dataclass(frozen=True)
class AddToSecret:
    """Add entries (base64) to a live Secret, if its uid still matches."""

    name: str
    uid: str
    data: dict[str, str] = field(repr=False)


@dataclass(frozen=True)
class SetAuthority:
    """Write the Secret of a stack's authority, if it still has the resource version in the manifest. `why`: what changes, as a sentence."""

    manifest: Json = field(repr=False)
    why: str


@dataclass(frozen=True)
class Delete:
    """Delete a live object, if its uid still matches. With a resource version, that must match too."""

    api_version: str
    kind: str
    name: str
    uid: str
    reason: Reason
    resource_version: str | None = None


def deletions(items: Iterable[Json | None], reason: Reason) -> tuple[Delete, ...]:
    """Returns deletions of the objects that exist and are not being deleted. Those that hold data must be unchanged since the read."""
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
    """Change the request of a volume claim, if its uid still matches."""

    name: str
    uid: str
    size: str


@dataclass(frozen=True)
class SetFinalizer:
    """Add or remove the finalizer of a resource. `message` explains what that means for the data."""

    present: bool
    reason: Reason
    message: str


@dataclass(frozen=True)
class SetBookieMode:
    """Make a bookie read-only or writable over its admin port, and verify it. The mode survives a restart."""

    bookie_id: str
    host: str
    read_only: bool
    token: str = field(repr=False)
    reason: Reason


@dataclass(frozen=True)
class InZooKeeper:
    """An action in the ensemble at `host:port,host:port`."""

    zookeeper_address: str


@dataclass(frozen=True)
class OnRoot(InZooKeeper):
    """An action on BookKeeper's or HerdDB's root, or below it."""

    root: str


@dataclass(frozen=True)
class OnNode:
    """An order to a SQL node of a HerdDBCluster, about a tablespace."""

    herddb: str
    node: str
    tablespace: str


@dataclass(frozen=True)
class ChangeMembership(InZooKeeper):
    """Change ZooKeeper's membership from the read `version`: `server`, if given, joins or changes its role; `leaving` are server ids."""

    password: str = field(repr=False)
    server: Server | None
    leaving: tuple[int, ...]
    version: int
    reason: Reason
    why: str


@dataclass(frozen=True)
class EnsureZnode(InZooKeeper):
    """Create a persistent, empty znode and its parents."""

    path: str


@dataclass(frozen=True)
class FormatLedgersRoot(OnRoot):
    """Create BookKeeper's metadata root, which must not exist, with a new instance id. `access`: for ensembles with certificates."""

    access: RootAccess | None = None


@dataclass(frozen=True)
class CreateHerdRoot(OnRoot):
    """Create HerdDB's root in an ensemble that requires certificates. Elsewhere HerdDB creates it. Fails if the root exists."""

    access: RootAccess


@dataclass(frozen=True)
class SetRecoveryDelay(OnRoot):
    """Set by compare-and-set for how many seconds a bookie may be away. BookKeeper reads its configuration for that only once."""

    seconds: int
    version: int


@dataclass(frozen=True)
class StartBookieAudit(OnRoot):
    """Make BookKeeper's auditor check all ledgers now, like `shell triggeraudit`: rewrite the delay."""

    seconds: int
    version: int
    lost: tuple[str, ...]


@dataclass(frozen=True)
class RemoveCookie(OnRoot):
    """Delete the cookie of an unregistered bookie that no ledger names. No bookie can return under its id."""

    bookie_id: str


@dataclass(frozen=True)
class RestoreCookie(OnRoot):
    """Write the missing cookie of an unregistered bookie, if the cookie has the metadata's instance id. Never overwrites a cookie."""

    cookie: Cookie


@dataclass(frozen=True)
class DeleteZnodes(OnRoot):
    """Delete a tree of znodes, then its empty parents."""


@dataclass(frozen=True)
class CreateTablespace:
    """CREATE TABLESPACE by SQL on the node `via`. `leader` is its first and only replica."""

    herddb: str
    via: str
    name: str
    leader: str
    max_leader_inactivity_millis: int


@dataclass(frozen=True)
class ChangeTablespaceRecord(InZooKeeper):
    """Change HerdDB's record of a tablespace by compare-and-set."""

    path: str
    record: TablespaceRecord
    version: int
    why: str
    reason: Reason = Reason.REPLICAS_CHANGED


@dataclass(frozen=True)
class SetLogPin(InZooKeeper):
    """Set by compare-and-set the pin that keeps a tablespace's log from `lsn` (ledger id, entry id) on. None removes the pin.

    `version` is the version of the pin that was read, None if there was none.
    """

    path: str
    lsn: tuple[int, int] | None
    version: int | None
    why: str


@dataclass(frozen=True)
class SetArchiveExpiry(InZooKeeper):
    """Set by compare-and-set what the archiver may delete; None: nothing. `version` is that of the order read, None if there was none."""

    path: str
    order: ExpiryOrder | None
    version: int | None
    why: str


@dataclass(frozen=True)
class CheckpointFollower(OnNode):
    """Make a follower write a local checkpoint, so that it replays less as a leader. A follower that can't skips it."""


@dataclass(frozen=True)
class SetCopyAside(OnNode):
    """Make a SQL node set its files of a tablespace aside, so that its next replica is rebuilt.

    The node keeps the files as evidence. It refuses while it is a replica or still runs the tablespace. `why`: what is wrong with the
    files.
    """

    uuid: str
    why: str


@dataclass(frozen=True)
class BarPromotion(OnNode):
    """Make a SQL node record on disk that it must not promote itself. With `barred` False, lift the bar.

    The bar covers only HerdDB's own failover: a node that the record names still leads. Nothing waits for this action, and its failure
    blocks nothing. `until`: the LSN that an equal verdict must exceed to lift the bar; None: of a bar
    that an older node program set, which has none. A later bar than that stays. `why`: what was found out about the replica.
    """

    uuid: str
    barred: bool
    until: tuple[int, int] | None
    why: str


@dataclass(frozen=True)
class WakeNodes:
    """Make SQL nodes act on changed records at once. Nodes also poll, so one that does not answer is no error."""

    herddb: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class AnswerRequest:
    """Remove a request, which is an annotation, from a resource if it is unchanged, and write the answer."""

    kind: str
    name: str
    resource_version: str
    request: Request
    answer: str

    @staticmethod
    def on(resource: Resource, request: Request, answer: str) -> AnswerRequest:
        return AnswerRequest(resource.KIND, resource.metadata.name, resource.metadata.resource_version, request, answer)


@dataclass(frozen=True)
class CloseLedger(OnNode):
    """Make a SQL node close the ledger that it writes for a tablespace and open the next. Does nothing if it already writes another."""

    ledger_id: int
    reason: Reason = Reason.DRAINING


@dataclass(frozen=True)
class StartFullCheck(OnNode):
    """Make the leader of a tablespace start a full check, unless one runs. It pauses writes for at most `longest_stop_millis` at a time."""

    longest_stop_millis: int


@dataclass(frozen=True)
class ForgetNode(InZooKeeper):
    """Delete HerdDB's record and heartbeats of a SQL node that is gone, if no tablespace names it."""

    herd_root: str
    node: str


@dataclass(frozen=True)
class DropTablespace:
    """DROP TABLESPACE by SQL on the node `via`, which refuses another one of this name than that of this uuid."""

    herddb: str
    via: str
    name: str
    uuid: str


@dataclass(frozen=True)
class DeleteLogs(InZooKeeper):
    """Delete the ledgers of HerdDB's ledger lists, then the lists, which DROP leaves. `uuids`: the tablespaces; None: all of them."""

    ledgers_root: str
    herd_root: str
    uuids: tuple[str, ...] | None


Action = (
    Apply
    | Create
    | Annotate
    | AddToSecret
    | SetAuthority
    | Delete
    | SetFinalizer
    | SetBookieMode
    | ChangeMembership
    | EnsureZnode
    | FormatLedgersRoot
    | CreateHerdRoot
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
    """Returns the earliest of several requeue times, or None."""
    return min((each for each in seconds if each is not None), default=None)


@dataclass(frozen=True)
class Plan:
    """Actions in order, then perhaps a reason to wait.

    `requeue_after_seconds`: when to reconcile again without an event. `later` and `blockers` describe further steps and what they would
    wait for, in a plan that is only shown. `needs_ledgers`: the plan needs the metadata of all ledgers, so plan again with it.
    `decided_fields` are the status fields that the plan decides. `shown` is what another controller does meanwhile.
    """

    actions: tuple[Action, ...] = ()
    wait: Wait | None = None
    requeue_after_seconds: float | None = None
    later: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    needs_ledgers: bool = False
    decided_fields: Mapping[str, Any] = field(default_factory=dict)
    shown: tuple[Action, ...] = ()

    @staticmethod
    def waiting(reason: Reason, message: str, look_again_seconds: float = requeue.PENDING) -> Plan:
        """Returns a plan that only waits."""
        return Plan((), Wait(reason, message), look_again_seconds)
