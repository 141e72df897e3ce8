"""Refuses an invalid HerdDBCluster."""

from __future__ import annotations

from collections.abc import Iterator

from herdkeeper.api import BookKeeperCluster, HerdDBCluster
from herdkeeper.planning.refusal import Refusal, config_refusals, name_refusals, peer_refusals
from herdkeeper.shared import owned_config
from herdkeeper.shared.counted import counted


def herddb_refusals(cluster: HerdDBCluster, bookkeeper: BookKeeperCluster | None) -> tuple[Refusal, ...]:
    """Returns what is invalid in a HerdDBCluster, given the BookKeeperCluster that it refers to (or None)."""
    return (
        *_ensemble_beyond_bookies(cluster, bookkeeper),
        *name_refusals(cluster.spec),
        *peer_refusals(cluster.spec.clients, "spec.clients"),
        *peer_refusals(cluster.spec.scrapers, "spec.scrapers"),
        *config_refusals(cluster.spec.config, owned_config.HERDDB),
        *_checkpoint_period(cluster),
    )


def _checkpoint_period(cluster: HerdDBCluster) -> Iterator[Refusal]:
    """HerdDB refuses such a period at start: it might drop log that no checkpoint covers yet."""
    key = "server.checkpoint.period"
    period, most = cluster.spec.config.get(key), cluster.spec.ledgers.retention_hours * 3_600_000 // 2
    if period is not None and not (period.isdecimal() and 0 < int(period) <= most):
        yield Refusal(
            f"spec.config[{key}]",
            period if period.isdecimal() else "set",
            "it is in milliseconds, and at most half of spec.ledgers.retentionHours",
            f"write a whole number from 1 to {most}, or raise retentionHours",
        )


def _ensemble_beyond_bookies(cluster: HerdDBCluster, bookkeeper: BookKeeperCluster | None) -> Iterator[Refusal]:
    if bookkeeper is None:
        return
    ensemble_size = cluster.spec.ledgers.ensemble_size
    if ensemble_size > bookkeeper.spec.bookies:
        yield Refusal(
            "spec.ledgers.ensembleSize",
            str(ensemble_size),
            f"the BookKeeperCluster {bookkeeper.metadata.name} declares {counted(bookkeeper.spec.bookies, 'bookie')}, and a ledger needs "
            "as many as its ensemble",
            f"create a HerdDBCluster with an ensembleSize of at most {bookkeeper.spec.bookies}, "
            f"or raise spec.bookies of {bookkeeper.metadata.name} to {ensemble_size + 1} (one to spare)",
        )
