"""The certificates that the operator makes for a stack in the namespace `demo`, for real servers on this machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, ZooKeeperCluster
from herdkeeper.bookkeeper.state.certificate_holders import certificate_holders
from herdkeeper.certificates.authority import read_authority
from herdkeeper.certificates.holders import due_changes
from herdkeeper.certificates.issue import Validity, fresh_key
from herdkeeper.herddb.state.certificate_holder import certificate_holder
from herdkeeper.planning.identities import secret_of
from herdkeeper.shared.objects import Objects
from herdkeeper.zookeeper.observe_security import observe_security

META = {"namespace": "demo", "uid": "a-uid"}
ZOOKEEPER = ZooKeeperCluster.model_validate({"metadata": {**META, "name": "zk"}, "spec": {"security": {"mode": "TLS"}}})


def bookkeeper_cluster(name: str) -> BookKeeperCluster:
    """One on the ensemble."""
    return BookKeeperCluster.model_validate({"metadata": {**META, "name": name}, "spec": {"zooKeeperRef": {"name": "zk"}}})


def herddb_cluster(name: str, bookkeeper: str) -> HerdDBCluster:
    """One with its log there."""
    return HerdDBCluster.model_validate({"metadata": {**META, "name": name}, "spec": {"bookKeeperRef": {"name": bookkeeper}}})


def issued(*stacks: tuple[BookKeeperCluster, HerdDBCluster]) -> dict[str, dict[str, str]]:
    """The operator's Secrets of a new ensemble and of the clusters on it, by name."""
    fresh = observe_security(ZOOKEEPER, Objects({})).fresh_authorities
    stored = {("Secret", name): secret_of({"name": name}, data) for name, data in fresh.items()}
    members = observe_security(ZOOKEEPER, Objects(stored)).identities.changes
    authority = read_authority("zk", fresh[ZOOKEEPER.names.authority_secret])
    holders = [holder for log, database in stacks for holder in (*certificate_holders(log), certificate_holder(database))]
    others = due_changes(holders, {}, authority, fresh_key, Validity(datetime.now(UTC), timedelta(days=1)))
    return {change.holder.secret: dict(change.data) for change in (*members, *others)}
