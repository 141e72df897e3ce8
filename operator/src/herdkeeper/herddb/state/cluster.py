"""What was seen of a HerdDBCluster."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

from herdkeeper.api import BookKeeperCluster, Tablespace
from herdkeeper.certificates.holders import NOTHING_DUE, DueSecrets
from herdkeeper.herddb.state.tls import TlsUnusable, TlsUsable
from herdkeeper.herddb.state.zookeeper_times import NOT_TOLD, ZooKeeperTimes
from herdkeeper.herddb.tablespace.record import VersionedRecord
from herdkeeper.protocol.self_report import SelfReport
from herdkeeper.shared import names
from herdkeeper.shared.dependents import NO_DEPENDENTS, Dependents
from herdkeeper.shared.node import Nodes
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown


@dataclass(frozen=True)
class RetainedLog:
    """Ledgers of a log that are past the retention and kept: how many, since when (milliseconds since 1970) the oldest, and for whom."""

    ledgers: int
    since_millis: int
    kept_for: tuple[str, ...]


@dataclass(frozen=True)
class TableVerdict:
    """What a follower found when the check of a table, by the node `leader`, came by in its log: whether it has the same rows. `lsn` is
    that of the part which differed, or of the last one."""

    table: str
    passed: bool
    lsn: tuple[int, int]
    leader: str


@dataclass(frozen=True)
class FullCheck:
    """The check of all tables, as the node that led tells of it. Times are milliseconds since 1970, `ended_millis` None while it runs.

    Its entries lie in the log behind `after`, up to `until` (None before the first). `tables` are those that are done, each with the
    milliseconds for which writes could have had to wait; `writes_stopped_millis` is the whole, `longest_stop_millis` the longest piece.
    `not_checked` are the tables that could not be read, with the reason; `error` is why it ended early.
    """

    started_millis: int
    ended_millis: int | None
    after: tuple[int, int]
    until: tuple[int, int] | None
    tables: tuple[tuple[str, int], ...]
    not_checked: tuple[tuple[str, str], ...]
    writes_stopped_millis: int
    longest_stop_millis: int
    error: str | None


@dataclass(frozen=True)
class Counts:
    """Rows of each table that are committed at exactly this LSN."""

    lsn: tuple[int, int]
    tables: Mapping[str, int]


@dataclass(frozen=True)
class Unreplayable:
    """The entry of the log that a node can't apply: where it is, its kind, its table (None: it names none), and HerdDB's reason."""

    lsn: tuple[int, int]
    entry_type: str
    table: str | None
    message: str


@dataclass(frozen=True)
class NodeTablespace:
    """What a SQL node says of one tablespace. `role`: leader, follower, booting, failed or stopped. LSNs are (ledger id, entry id).

    `lsn` is the last applied entry; `checkpoint` is up to where the tables are on the node's own disk, `recoverable` whether the log still
    has what follows (None: it was not told). `checks` are what it found of each table when a leader's check came by; `differs` is how its
    rows differ from the log or the leader (None: as far as is known they don't; Unknown: what was found out can't be read).
    `retained_log` is what a leader has not released though it is past the retention. `full_check` is the last check of all tables that the
    node ran since its process started, None when there was none, Unknown from a node program that runs none.
    `barred` tells whether the node keeps on its disk that it must not make itself the leader (None: its program does not tell).
    `blocked_seconds` is for how long nobody who waits for the lock has got it on the leader, else 0 (None: its program does not tell).
    `counts` are its rows by table (None: entries were applied meanwhile, or its program does not tell). `unreplayable` is the entry that it
    can't get past, None when there is none.
    """

    name: str
    uuid: str
    role: str
    ready: bool
    lsn: tuple[int, int] | None
    last_error: str | None
    checkpoint: tuple[int, int] | None = None
    recoverable: bool | None = None
    differs: str | Unknown | None = None
    retained_log: RetainedLog | None = None
    checks: tuple[TableVerdict, ...] = ()
    full_check: FullCheck | Unknown | None = None
    barred: bool | None = None
    blocked_seconds: float | None = None
    counts: Counts | None = None
    unreplayable: Unreplayable | None = None

    @property
    def why_wrong(self) -> str | None:
        """Why its rows are not the log's; None as far as is known they are. The node remembers it when nobody else does."""
        if isinstance(self.differs, str):
            return f"it {self.differs}"
        return "it was found different from the log, as its node keeps on its disk" if self.barred is True else None


NodeView = tuple[NodeTablespace, ...]
"""All tablespaces of one SQL node."""


@dataclass(frozen=True)
class UserCredentials:
    """Name and password of the administrator, or of another user, out of a Secret."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class CredentialsMissing:
    """The named Secret is not there, lacks a key, or holds what can't be a login."""

    reason: Reason
    why: str


NOT_LOOKED_AT = Unknown("it was not read")


@dataclass(frozen=True)
class HerdDBObserved:
    """`credentials` is what the named Secret holds, None when none is named or the generated one does not exist yet.

    `bookkeeper` is the BookKeeperCluster that it refers to, None while there is none. `root_parent` and `root` tell whether the znode above
    the cluster's root, and the root, exist. `fresh_password` and `fresh_token` are random: for a Secret that has yet to get them.
    `records` are HerdDB's records by tablespace, `tablespaces` the resources that refer to it; `now` is in seconds since 1970.
    `registered` are the nodes of which HerdDB has a record. `taken_services` are the names of leaders' Services under which somebody else
    has a Service. `dependents` are the Tablespaces that refer to it. `disruption` is which bookie, or
    member of the ensemble, is being disrupted, None when none is.
    `silent_seconds` tells of each node that was ever heard for how long it has said nothing, `reports` what those that are not silent say
    of their own connections. `heartbeats` are those of all replicas, in seconds since 1970 by ZooKeeper's clock, by tablespace and node.
    `zookeeper` is the time by the same clock.
    `machines` are the Kubernetes nodes of SQL nodes that are not Ready. `tls` is what the Secret of `spec.tls` is good for, None when none
    is named. `users` is what the Secrets of `spec.users` hold, by their names. `ownerless_pins` are the pins, path and version, that keep
    the log of tablespaces which no resource declares any more: nobody would ever move them on. `identities` are the Secrets with
    certificates that are due.
    """

    objects: Objects
    bookkeeper: BookKeeperCluster | None
    nodes: Mapping[str, NodeView | Unknown]
    root_parent: bool | Unknown = NOT_LOOKED_AT
    root: bool | Unknown = NOT_LOOKED_AT
    credentials: UserCredentials | CredentialsMissing | None = None
    fresh_password: str = field(default="", repr=False)
    fresh_token: str = field(default="", repr=False)
    records: Mapping[str, VersionedRecord] | Unknown = field(default_factory=dict)
    registered: tuple[str, ...] | Unknown = ()
    tablespaces: tuple[Tablespace, ...] = ()
    taken_services: frozenset[str] = frozenset()
    now: float = 0.0
    dependents: Dependents = NO_DEPENDENTS
    disruption: str | None = None
    silent_seconds: Mapping[str, float] = field(default_factory=dict)
    reports: Mapping[str, SelfReport] = field(default_factory=dict)
    heartbeats: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    zookeeper: ZooKeeperTimes = NOT_TOLD
    machines: Nodes = field(default_factory=dict)
    tls: TlsUsable | TlsUnusable | None = None
    users: Mapping[str, UserCredentials | CredentialsMissing] = field(default_factory=dict)
    ownerless_pins: tuple[tuple[str, int], ...] = ()
    identities: DueSecrets = NOTHING_DUE


def secret_token(objects: Objects, secret: str) -> str | None:
    """The token in a Secret that the operator made; None when there is none yet."""
    return _entry(objects, secret, names.TOKEN_KEY)


def users_file(objects: Objects, secret: str) -> str:
    """HerdDB's users file in a Secret that the operator made; "" when there is none yet."""
    return _entry(objects, secret, names.USERS_KEY) or ""


def _entry(objects: Objects, secret: str, key: str) -> str | None:
    live = objects.get("Secret", secret)
    encoded = ((live or {}).get("data") or {}).get(key)
    return base64.b64decode(encoded).decode(errors="replace") or None if encoded else None
