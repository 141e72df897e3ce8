"""What a BookKeeperCluster must not say."""

from __future__ import annotations

from collections.abc import Iterator

from herdkeeper.api import (
    BookKeeperCluster,
)
from herdkeeper.api.bookkeeper_cluster import GarbageCollection
from herdkeeper.planning.refusal import (
    Refusal,
    config_refusals,
    memory_refusals,
    name_refusals,
    peer_refusals,
)
from herdkeeper.shared import owned_config


def bookkeeper_refusals(cluster: BookKeeperCluster) -> tuple[Refusal, ...]:
    """What a BookKeeperCluster says and must not say."""
    return (
        *name_refusals(cluster.metadata),
        *_one_metadata_source(cluster),
        *memory_refusals("spec.resources.memory", cluster.spec.resources.memory, "bookie"),
        *memory_refusals("spec.autoRecovery.resources.memory", cluster.spec.auto_recovery.resources.memory, "autorecovery"),
        *_compaction_refusals(cluster.spec.garbage_collection),
        *peer_refusals(cluster.spec.clients, "spec.clients"),
        *peer_refusals(cluster.spec.scrapers, "spec.scrapers"),
        *config_refusals(cluster.spec.config, owned_config.BOOKKEEPER),
    )


def _one_metadata_source(cluster: BookKeeperCluster) -> Iterator[Refusal]:
    if (cluster.spec.zoo_keeper_ref is None) == (cluster.spec.zoo_keeper_address is None):
        both = cluster.spec.zoo_keeper_ref is not None
        yield Refusal(
            "spec.zooKeeperRef",
            f"{cluster.spec.zoo_keeper_ref.name} beside a zooKeeperAddress"
            if cluster.spec.zoo_keeper_ref
            else "absent, and so is zooKeeperAddress",
            "the metadata is in exactly one ensemble",
            "remove one of spec.zooKeeperRef and spec.zooKeeperAddress"
            if both
            else "set one of spec.zooKeeperRef and spec.zooKeeperAddress",
        )


def _compaction_refusals(collection: GarbageCollection) -> Iterator[Refusal]:
    """What a bookie refuses at its start (GarbageCollectorThread, BookKeeper 4.18)."""
    minor, major = collection.minor_compaction, collection.major_compaction
    path, larger = "spec.garbageCollection", f"{major.threshold_percent} % each {major.interval_seconds} s"
    both = minor.threshold_percent > 0 and major.threshold_percent > 0
    if both and not (minor.threshold_percent < major.threshold_percent and minor.interval_seconds < major.interval_seconds):
        yield Refusal(
            f"{path}.minorCompaction",
            f"{minor.threshold_percent} % each {minor.interval_seconds} s",
            f"its threshold and interval must be below those of majorCompaction ({larger})",
            "lower it, or switch one of them off with thresholdPercent 0",
        )
    if collection.interval_seconds > min(minor.interval_seconds, major.interval_seconds):
        yield Refusal(
            f"{path}.intervalSeconds",
            str(collection.interval_seconds),
            f"bookies do not start when it exceeds the compactions' intervals ({minor.interval_seconds} and {major.interval_seconds})",
            "lower it",
        )
