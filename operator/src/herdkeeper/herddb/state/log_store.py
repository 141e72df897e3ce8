"""The location of a database's log, by the BookKeeperCluster that keeps it."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import BookKeeperCluster
from herdkeeper.bookkeeper.state.racks import Placement, PlacementPolicy
from herdkeeper.shared import names
from herdkeeper.shared.names import BookKeeperNames, ObjectKey, ZooKeeperNames


@dataclass(frozen=True)
class LogStore:
    """The location of a log: ZooKeeper's `host:port,host:port`, the BookKeeperCluster and its root there, and how ensembles are chosen.
    `plaintext`: its servers accept plain text beside certificates.
    """

    zookeeper_address: str
    ledgers_root: str
    placement: Placement
    bookkeeper: ObjectKey
    plaintext: bool = False

    @property
    def namespace(self) -> str:
        """The namespace of all its users."""
        return self.bookkeeper.namespace

    @property
    def applications_address(self) -> str:
        """Where applications find leaders: in plain text while that is accepted, since they may have no certificate yet."""
        return names.plain_address(self.zookeeper_address) if self.plaintext else self.zookeeper_address

    @property
    def asks_for_certificates(self) -> bool:
        """Whether the operator's servers and jobs show certificates there."""
        return names.secure_ensemble(self.zookeeper_address, self.namespace) is not None

    @property
    def readers_secret(self) -> str | None:
        """Secret with the certificate of jobs that only read it, or None."""
        return BookKeeperNames(self.bookkeeper).readers_secret if self.asks_for_certificates else None

    @property
    def bookies_secret(self) -> str | None:
        """Secret with the certificate of jobs that do the work of bookies, or None."""
        return BookKeeperNames(self.bookkeeper).identity_secret if self.asks_for_certificates else None


def log_store(bookkeeper: BookKeeperCluster | None) -> LogStore | None:
    """Returns the location of the log once the BookKeeperCluster's status reports it.

    Of the status, only the ensemble's size and port count: ledgers are deleted there, and the right to write a status must not extend to
    other data.
    """
    if bookkeeper is None or bookkeeper.status is None:
        return None
    address = bookkeeper.status.zoo_keeper_address
    if not address or not bookkeeper.status.ledgers_root:
        return None
    ensemble = bookkeeper.spec.zoo_keeper_ref
    if ensemble is not None and not ZooKeeperNames(ObjectKey(bookkeeper.key.namespace, ensemble.name)).lists(address):
        return None
    wanted = bookkeeper.spec.placement
    named = bookkeeper.names
    policy = PlacementPolicy(bookkeeper.status.placement_policy or PlacementPolicy.RACK_AWARE)
    place = bookkeeper.spec.zoo_keeper_address or address
    return LogStore(
        place,
        named.ledgers_root,
        Placement(policy, wanted.min_racks_per_write_quorum, wanted.enforced, named.racks_config_map),
        bookkeeper.key,
        bool(bookkeeper.status.accepts_plaintext),
    )
