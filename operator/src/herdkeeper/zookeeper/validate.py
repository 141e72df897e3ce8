"""Refuses an invalid ZooKeeperCluster."""

from __future__ import annotations

from collections.abc import Iterator

from herdkeeper.api import (
    ZooKeeperCluster,
)
from herdkeeper.planning.refusal import (
    Refusal,
    config_refusals,
    peer_refusals,
)
from herdkeeper.shared import owned_config
from herdkeeper.shared.quorum import SAFE_SIZE


def zookeeper_refusals(cluster: ZooKeeperCluster, voters: int | None = None) -> tuple[Refusal, ...]:
    """Returns what is invalid in a ZooKeeperCluster, given the number of current voters (None if unknown)."""
    return (
        *_single_member(cluster, voters),
        *peer_refusals(cluster.spec.clients, "spec.clients"),
        *config_refusals(cluster.spec.config, owned_config.ZOOKEEPER, owned_config.ZOOKEEPER_PREFIXES),
    )


def _single_member(cluster: ZooKeeperCluster, voters: int | None) -> Iterator[Refusal]:
    """A deleted and recreated resource finds the ensemble of its retained volumes. The rule on changes can't detect that."""
    replicas = cluster.spec.replicas
    if voters is not None and replicas < SAFE_SIZE <= voters and not cluster.spec.allow_single_member:
        yield Refusal(
            "spec.replicas",
            str(replicas),
            f"the ensemble has {voters} voters; the loss of a single member would stop everything, and its volume would be the only copy",
            f"set {SAFE_SIZE}, or set spec.allowSingleMember to true",
        )
