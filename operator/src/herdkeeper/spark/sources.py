"""What the references of a Checkpoint, an audit, a restore or a drill resolve to: the input of the Jobs' builders."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from herdkeeper.api.job import Destination


@dataclass(frozen=True)
class ArchiveSource:
    """The archive of a log: the Tablespace of its archiver, or None if unknown, and the place."""

    tablespace: str | None
    destination: Destination


@dataclass(frozen=True)
class FollowerSource:
    """A follower whose tables may be the base of a Checkpoint, for lack of anything else. `witness` is one that verifies it, None if the
    first one matched the log before. Both are host:port of HTTP endpoints.
    """

    follower: str
    witness: str | None = None


@dataclass(frozen=True)
class CheckpointSource:
    """What a Checkpoint's references resolve to.

    `leader` and `follower` are host:port of their HTTP endpoints, or None. `secret` is the Secret with their token. `archive` is the log's
    archive, or None. `begins_with` is a follower fit as a base, or None. `identity` is the Secret with the certificate that servers
    require, or None. `with_tls` are the addresses that speak TLS, and `authorities` is the Secret with the certificates that verify
    them.
    """

    zookeeper_address: str
    ledgers_root: str
    herd_root: str
    tablespace: str
    leader: str | None
    follower: str | None
    secret: str
    archive: ArchiveSource | None = None
    begins_with: FollowerSource | None = None
    identity: str | None = None
    with_tls: frozenset[str] = frozenset()
    authorities: str | None = None


@dataclass(frozen=True)
class AuditSource:
    """What a ReplicationAudit refers to: the cluster, its bookies' racks by id, the racks that each entry needs. See CheckpointSource."""

    zookeeper_address: str
    ledgers_root: str
    rack_of: Mapping[str, str] = field(default_factory=dict)
    min_racks: int = 1
    identity: str | None = None


@dataclass(frozen=True)
class OpenWindow:
    """The current hours in which an audit may read."""

    now: datetime.datetime
    closes: datetime.datetime

    @property
    def seconds_left(self) -> int:
        """Whole seconds until it closes, rounded up."""
        return math.ceil((self.closes - self.now).total_seconds())


@dataclass(frozen=True)
class Login:
    """The Secret with the database's user and password, and the one with certificates to verify its nodes, None without TLS."""

    secret: str
    tls_secret: str | None = None


@dataclass(frozen=True)
class RestoreSource:
    """What a Tablespace's bootstrap resolves to.

    `path` is that of a manifest at the place `files`, or with `archive` perhaps of a tablespace's folder there. `archive` is the old log's
    archive, for a moment; `identity` as in CheckpointSource.
    """

    zookeeper_address: str
    herd_root: str
    files: Destination
    path: str
    login: Login
    archive: ArchiveSource | None = None
    identity: str | None = None


@dataclass(frozen=True)
class DrillSource:
    """What a drill restores, and where: the checkpoint's destination, the manifest's path there, the database's image, the Job's name."""

    files: Destination
    manifest: str
    herddb_image: str
    job: str
