"""What a HerdDBCluster must not say."""

from __future__ import annotations

from collections.abc import Iterator

from herdkeeper.api import (
    BookKeeperCluster,
    HerdDBCluster,
)
from herdkeeper.api.herddb_cluster import LEAST_LEDGER_SIZE
from herdkeeper.planning.refusal import (
    Refusal,
    config_refusals,
    memory_refusals,
    name_refusals,
    peer_refusals,
)
from herdkeeper.shared import owned_config
from herdkeeper.shared.quantity import bytes_of


def herddb_refusals(cluster: HerdDBCluster, bookkeeper: BookKeeperCluster | None) -> tuple[Refusal, ...]:
    """What a HerdDBCluster says and must not say, given the BookKeeperCluster that it refers to (None while there is none)."""
    return (
        *name_refusals(cluster.metadata),
        *_quorum_refusals(cluster),
        *_ensemble_beyond_bookies(cluster, bookkeeper),
        *memory_refusals("spec.resources.memory", cluster.spec.resources.memory, "herddb"),
        *peer_refusals(cluster.spec.clients, "spec.clients"),
        *peer_refusals(cluster.spec.scrapers, "spec.scrapers"),
        *config_refusals(cluster.spec.config, owned_config.HERDDB),
        *_checkpoint_period(cluster),
        *_ledger_size(cluster),
    )


def _checkpoint_period(cluster: HerdDBCluster) -> Iterator[Refusal]:
    """What HerdDB refuses at its start: it might drop log that no checkpoint covers yet."""
    key = "server.checkpoint.period"
    period, most = cluster.spec.config.get(key), cluster.spec.ledgers.retention_hours * 3_600_000 // 2
    if period is not None and not (period.isdigit() and 0 < int(period) <= most):
        yield Refusal(
            f"spec.config[{key}]",
            repr(period),
            f"it is milliseconds, and at most half of spec.ledgers.retentionHours ({most})",
            "lower it, or raise retentionHours",
        )


def _ledger_size(cluster: HerdDBCluster) -> Iterator[Refusal]:
    size = cluster.spec.ledgers.max_size
    if bytes_of(size) < bytes_of(LEAST_LEDGER_SIZE):
        yield Refusal(
            "spec.ledgers.maxSize", size, "each ledger costs ZooKeeper and the bookies metadata", f"set at least {LEAST_LEDGER_SIZE}"
        )


def _quorum_refusals(cluster: HerdDBCluster) -> Iterator[Refusal]:
    ledgers = cluster.spec.ledgers
    if ledgers.write_quorum > ledgers.ensemble_size:
        yield Refusal(
            "spec.ledgers.writeQuorum",
            str(ledgers.write_quorum),
            f"an entry can't have more copies than its ledger has bookies (ensembleSize {ledgers.ensemble_size})",
            "lower writeQuorum or raise ensembleSize",
        )
    if ledgers.ack_quorum > ledgers.write_quorum:
        yield Refusal(
            "spec.ledgers.ackQuorum",
            str(ledgers.ack_quorum),
            f"a write can't wait for more copies than are written (writeQuorum {ledgers.write_quorum})",
            "lower ackQuorum or raise writeQuorum",
        )


def _ensemble_beyond_bookies(cluster: HerdDBCluster, bookkeeper: BookKeeperCluster | None) -> Iterator[Refusal]:
    if bookkeeper is None:
        return
    ensemble_size = cluster.spec.ledgers.ensemble_size
    if ensemble_size > bookkeeper.spec.bookies:
        yield Refusal(
            "spec.ledgers.ensembleSize",
            str(ensemble_size),
            f"the BookKeeperCluster {bookkeeper.metadata.name} has {bookkeeper.spec.bookies} bookies, so no ledger could be opened",
            f"create a HerdDBCluster with an ensembleSize of at most {bookkeeper.spec.bookies}, "
            f"or raise spec.bookies of {bookkeeper.metadata.name} to {ensemble_size + 1} (one to spare)",
        )
