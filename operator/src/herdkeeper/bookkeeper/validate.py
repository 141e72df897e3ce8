"""Refuses an invalid BookKeeperCluster."""

from __future__ import annotations

from herdkeeper.api import BookKeeperCluster
from herdkeeper.planning.refusal import Refusal, config_refusals, name_refusals, peer_refusals
from herdkeeper.shared import owned_config


def bookkeeper_refusals(cluster: BookKeeperCluster) -> tuple[Refusal, ...]:
    return (
        *name_refusals(cluster.spec),
        *peer_refusals(cluster.spec.clients, "spec.clients"),
        *peer_refusals(cluster.spec.scrapers, "spec.scrapers"),
        *config_refusals(cluster.spec.config, owned_config.BOOKKEEPER),
    )
