"""The observation of a HerdDBCluster: what its SQL nodes, its Secrets and HerdDB's records tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.shared.unknown import Unknown

MOST_TABLESPACES = 1000
"""Of a HerdDBCluster, with HerdDB's own. What is decided for each, and for each node, must fit into the operator's memory and time."""
MOST_READ_TABLESPACES = MOST_TABLESPACES + 10
"""Reconciles may make some at once, each in sight of the last free place."""


@dataclass(frozen=True)
class RetainedLog:
    """Ledgers that are kept past their retention: how many, since when the oldest (Unix milliseconds), and for whom."""

    ledgers: int
    since_millis: int
    kept_for: tuple[str, ...]


@dataclass(frozen=True)
class TableVerdict:
    """Whether a follower's rows of a table equal those of `leader`, in its check. `lsn`: of the part that differs, or of the last one."""

    table: str
    passed: bool
    lsn: tuple[int, int]
    leader: str


@dataclass(frozen=True)
class FullCheck:
    """A full check, as reported by its leader. Times are Unix milliseconds; `ended_millis` is None while it runs.

    Its entries are in the log after `after`, up to `until` (None before the first). `tables` are the checked ones, each with the
    milliseconds for which writes may have waited; `writes_stopped_millis` is the total, `longest_stop_millis` the longest pause.
    `not_checked` are unreadable tables with the reason; `error` is why it ended early.
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
    """Rows of each table committed at exactly this LSN."""

    lsn: tuple[int, int]
    tables: Mapping[str, int]


FOREIGN_LEDGER = "FOREIGN_LEDGER"
"""The type in the place of an entry's, for a listed ledger that the node does not open: its metadata don't name this tablespace."""

LOST_LEDGER = "LOST_LEDGER"
"""The same for a listed ledger that is gone from BookKeeper; with the ledger id -1, the list of all ledgers is gone from ZooKeeper."""


@dataclass(frozen=True)
class Unreplayable:
    """The log entry that a node can't apply: its LSN, its type, its table (None: it names none), and HerdDB's error. `disk`: the node's
    disk is the cause, so the entry may be good. For a FOREIGN_LEDGER or a LOST_LEDGER, the LSN has its id, and the error what is wrong.
    """

    lsn: tuple[int, int]
    entry_type: str
    table: str | None
    message: str
    disk: bool = False


@dataclass(frozen=True)
class NodeTablespace:
    """A SQL node's view of one tablespace. `role`: leader, follower, booting, failed or stopped. LSNs are (ledger id, entry id).

    `lsn` is the last applied entry; `checkpoint` the position of the local checkpoint; `recoverable`: whether the log still has what
    follows it. `checks` are its results of a leader's check, by table; `differs` is how its rows differ from log or leader (None: not known
    to differ; Unknown: the finding is unreadable). `retained_log` is what a leader keeps past the retention. `full_check` is the last check
    that the node ran since its process started, or None; Unknown from a program that runs none. `barred`: whether it has noted on disk that
    it must not promote itself. `barred_until`: only an equal verdict after this LSN lifts that bar (Unknown: the disk does not tell; None
    from an older program, or not barred). `blocked_seconds`: for how long no waiter has got the leader's lock, else 0. `counts` are its
    rows by table (None if entries were applied meanwhile). `unreplayable` is the entry that it can't apply, or the
    ledger that it can't open, or None.

    `recoverable`, `barred`, `blocked_seconds` and `counts` are None from older programs, too.
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
    barred_until: tuple[int, int] | Unknown | None = None
    blocked_seconds: float | None = None
    counts: Counts | None = None
    unreplayable: Unreplayable | None = None

    @property
    def why_wrong(self) -> str | None:
        """Returns why its rows differ from the log, or None if not known to. The node remembers this if nobody else does."""
        if isinstance(self.differs, str):
            return f"it {self.differs}"
        return "it differs from the log, as its node has noted on its disk" if self.barred is True else None


NodeView = tuple[NodeTablespace, ...]
"""All tablespaces of one SQL node."""


def copies_of(nodes: Mapping[str, NodeView | Unknown], uuid: str) -> Iterator[tuple[str, NodeTablespace]]:
    """Yields the nodes that report the tablespace with this uuid, each with its view of it."""
    for node, view in nodes.items():
        if not isinstance(view, Unknown):
            yield from ((node, copy) for copy in view if copy.uuid == uuid)


@dataclass(frozen=True)
class UserCredentials:
    """Name and password of a user, from a Secret."""

    username: str
    password: str = field(repr=False)


NOT_LOOKED_AT = Unknown("it was not read")


@dataclass(frozen=True)
class Place:
    """Where a SQL node is: the Kubernetes node, and its zone; None if unknown."""

    machine: str | None = None
    zone: str | None = None


@dataclass(frozen=True)
class RecordAbsent:
    """HerdDB has no tablespace of this name."""


@dataclass(frozen=True)
class VersionedRecord:
    """HerdDB's record and its znode's version. `changed_at`: its last write in Unix seconds by ZooKeeper's clock; None if not read."""

    record: TablespaceRecord
    version: int
    changed_at: float | None = None


@dataclass(frozen=True)
class ZooKeeperTimes:
    """Unix seconds by the clock of ZooKeeper's leader. It may differ from the operator's and the kubelets', so these times are compared
    only with each other.

    `now` is the time of the newest heartbeat, or None. The present is hardly later, since each replica sends one a second. `registered` is
    when each node's process registered, at its start (ZookeeperMetadataStorageManager.registerNode of HerdDB 0.29.0).
    """

    now: float | None = None
    registered: Mapping[str, float] = field(default_factory=dict)


NOT_TOLD = ZooKeeperTimes()
