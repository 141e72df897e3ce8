"""Actions on ZooKeeper: the metadata roots of BookKeeper and HerdDB, and HerdDB's records. Each write is counted."""

from __future__ import annotations

import uuid

from herdkeeper.formats.bookkeeper_layout import decode_layout, ledger_path
from herdkeeper.formats.bookkeeper_replication import recovery_delay_path
from herdkeeper.formats.herddb_ledgers import decode_ledgers, ledgers_path
from herdkeeper.formats.herddb_replica import replicas_path
from herdkeeper.formats.herddb_tablespace import encode_tablespace
from herdkeeper.metrics import WRITES
from herdkeeper.observe.ensembles import Ensemble
from herdkeeper.plan.action import ChangeTablespaceRecord, DeleteLogs, SetRecoveryDelay

LAYOUT = b"2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1"
"""What BookKeeper 4.18 writes for `zk+hierarchical` (LedgerLayout, format version 2)."""


def ensure_znode(ensemble: Ensemble, path: str) -> None:
    """A persistent, empty znode and its parents."""
    ensemble.ensure(path)
    _count("create")


def format_ledgers_root(ensemble: Ensemble, root: str) -> None:
    """What `bookkeeper shell initnewcluster` makes (ZKRegistrationManager.initNewCluster, 4.18), in one transaction.

    EnsembleError when something is at the root already.
    """
    ensemble.ensure(root.rpartition("/")[0])
    ensemble.create_all(
        (
            (root, b""),
            (f"{root}/available", b""),
            (f"{root}/available/readonly", b""),
            (f"{root}/INSTANCEID", str(uuid.uuid4()).encode()),
            (f"{root}/LAYOUT", LAYOUT),
        )
    )
    _count("create")


def set_recovery_delay(ensemble: Ensemble, action: SetRecoveryDelay) -> None:
    """Compare-and-set on the version that was read; auditors watch the znode."""
    ensemble.compare_and_set(recovery_delay_path(action.root), str(action.seconds).encode(), action.version)
    _count("set")


def change_tablespace_record(ensemble: Ensemble, action: ChangeTablespaceRecord) -> None:
    """Compare-and-set on the version that was read."""
    ensemble.compare_and_set(action.path, encode_tablespace(action.record), action.version)
    _count("set")


def delete_znodes(ensemble: Ensemble, root: str) -> None:
    """The tree, then each parent that is empty then: clusters of one namespace share the first."""
    ensemble.delete_tree(root)
    parent = root.rpartition("/")[0]
    while parent and ensemble.delete_if_empty(parent):
        parent = parent.rpartition("/")[0]
    _count("delete")


def delete_logs(ensemble: Ensemble, action: DeleteLogs) -> None:
    """The ledgers of the listed tablespaces (all when None), then their lists and heartbeats. Bookies collect what no metadata names."""
    root = action.herd_root
    uuids = action.uuids if action.uuids is not None else ensemble.children(f"{root}/ledgers") or ()
    layout = ensemble.read(f"{action.ledgers_root}/LAYOUT")
    for tablespace_uuid in uuids:
        found = ensemble.read(ledgers_path(root, tablespace_uuid))
        if found is not None and layout is not None:
            for ledger in decode_ledgers(found[0]).active:
                ensemble.delete(action.ledgers_root + ledger_path(decode_layout(layout[0]), ledger))
        ensemble.delete_tree(replicas_path(root, tablespace_uuid))
        ensemble.delete_tree(ledgers_path(root, tablespace_uuid))
    _count("delete")


def _count(verb: str) -> None:
    WRITES.labels(verb, "Znode").inc()
