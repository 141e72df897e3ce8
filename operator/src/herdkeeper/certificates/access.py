"""Who may what in an ensemble that requires certificates: the ACLs of the roots of BookKeeper and HerdDB.

`StackAccess` of images/zookeeper enforces them: what clients create gets the ACL of its parent, and who deletes a znode must be allowed to
write it. So only znodes are listed here whose access differs from that of their parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntFlag

from herdkeeper.certificates import roles
from herdkeeper.certificates.issue import Subject
from herdkeeper.shared.names import ObjectKey, herd_root, ledgers_root

SCHEME = "stack"
"""The scheme of these ACLs. Its ids are subjects of certificates, in which one `*` stands for any name."""
OPEN_SCHEME, ANYONE = "world", "anyone"
"""ZooKeeper's scheme and id for everyone who connects."""


class Rights(IntFlag):
    """Permissions of an ACL, by ZooKeeper's bits (ZooDefs.Perms)."""

    READ = 1
    WRITE = 2
    CREATE = 4
    DELETE = 8
    ADMIN = 16
    CHANGE = READ | WRITE | CREATE | DELETE
    ALL = CHANGE | ADMIN


@dataclass(frozen=True)
class Grant:
    """What the holders of certificates with this subject may do with a znode, and with its children's names."""

    subject: Subject | None
    """None: anyone with a certificate of the ensemble."""
    rights: Rights

    @property
    def holder(self) -> str:
        """The subject as ZooKeeper compares it (RFC 4514), or `anyone`."""
        return ANYONE if self.subject is None else str(self.subject.x500.rfc4514_string())

    @property
    def scheme(self) -> str:
        """ZooKeeper's scheme of the holder."""
        return OPEN_SCHEME if self.subject is None else SCHEME


Access = tuple[Grant, ...]


@dataclass(frozen=True)
class RootAccess:
    """The access to a root: to the znodes above it, the highest first, and to the root and znodes below it; by path."""

    above: Mapping[str, Access]
    within: Mapping[str, Access]


def ledgers_access(bookkeeper: ObjectKey) -> RootAccess:
    """Access to a BookKeeperCluster's root. Any HerdDBCluster may keep its log there, so SQL nodes of any name may create ledgers."""
    root, name = ledgers_root(bookkeeper), bookkeeper.name
    bookies, readers, nodes = roles.bookies(name), roles.readers(name), roles.sql_nodes(roles.ANY, name)
    others_read = (Grant(readers, Rights.READ), Grant(nodes, Rights.READ))
    of_bookies = _owned(Grant(bookies, Rights.CHANGE), *others_read)
    fixed = _owned(Grant(bookies, Rights.READ), *others_read)
    return RootAccess(
        _above(bookkeeper),
        {
            root: _owned(Grant(bookies, Rights.CHANGE), Grant(nodes, Rights.CHANGE), Grant(readers, Rights.READ)),
            f"{root}/INSTANCEID": fixed,
            f"{root}/LAYOUT": fixed,
            f"{root}/available": of_bookies,
            f"{root}/available/readonly": of_bookies,
            f"{root}/cookies": of_bookies,
            f"{root}/underreplication": of_bookies,
        },
    )


def herd_access(herddb: ObjectKey, bookkeeper: str) -> RootAccess:
    """Access to a HerdDBCluster's root. Readers report how far they archived the log, and pin it; repairs read lists of ledgers."""
    root = herd_root(herddb)
    nodes, readers = roles.sql_nodes(herddb.name, bookkeeper), roles.readers(bookkeeper)
    bookies_read = Grant(roles.bookies(bookkeeper), Rights.READ)
    return RootAccess(
        _above(herddb),
        {
            root: _owned(Grant(nodes, Rights.CHANGE), Grant(readers, Rights.READ), bookies_read),
            f"{root}/logPins": _owned(Grant(nodes, Rights.CHANGE), Grant(readers, Rights.CHANGE), bookies_read),
            f"{root}/logArchive": _owned(Grant(nodes, Rights.READ), Grant(readers, Rights.CHANGE), bookies_read),
        },
    )


def _above(key: ObjectKey) -> dict[str, Access]:
    """Access to the znodes above a cluster's root.

    HerdDB creates its root at each start, and ZooKeeper checks the right to create it before it answers that the root exists. Audits list a
    namespace's clusters to find the databases of orphaned ledgers.
    """
    nodes = Grant(roles.sql_nodes(key.name, roles.ANY), Rights.CREATE)
    names = Grant(None, Rights.READ)
    return {"/": _owned(), f"/{key.namespace}": _owned(names), f"/{key.namespace}/{key.name}": _owned(nodes)}


def _owned(*others: Grant) -> Access:
    return (Grant(roles.OPERATOR, Rights.ALL), *others)
