"""Builds the Kubernetes objects of bookies and autorecovery from a BookKeeperCluster. Keys: BookKeeper's bk_server.conf, 4.18."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from herdkeeper.api import BookKeeperCluster
from herdkeeper.api.bookkeeper_cluster import MOST, GarbageCollection, JournalSync
from herdkeeper.api.default_images import image_of
from herdkeeper.bookkeeper.build.racks import MOUNT, build_racks, placement_lines, racks_volume
from herdkeeper.bookkeeper.state.claims import ledgers_claims
from herdkeeper.bookkeeper.state.racks import Rack, placement_of
from herdkeeper.certificates.settings import bookie_lines, bookkeeper_lines
from herdkeeper.planning import pods as pod
from herdkeeper.planning.identities import FOLDER, PodIdentity, java_identity, secret_of
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json
from herdkeeper.shared.quantity import MIB, bytes_of

COMPONENT = names.BOOKIE_COMPONENT
REPLAY_PROBES = 720
"""An hour. A bookie whose `lastMark` was emptied replays all of its journal's volume, and on a slow disk only some MiB a second."""
TOKEN_MOUNT = "/token"  # noqa: S105 - where the image's GuardedHttpServer reads it


@dataclass(frozen=True)
class BookieIdentity:
    """A bookie: its number and the id on its claims."""

    number: int
    bookie_id: str


@dataclass(frozen=True)
class Founded:
    """The metadata root's instance id, the ids with a cookie, and the ids that have served. None of these may start on empty volumes."""

    instance_id: str
    cookies: frozenset[str]
    served: frozenset[str]


def build_bookies_shared(
    cluster: BookKeeperCluster, zookeeper_address: str, founded: Founded, *, plaintext: bool = False, running: int = 0
) -> tuple[Json, ...]:
    """Returns what all bookies share. `zookeeper_address` is `host:port,host:port`; `plaintext`: those with certificates accept plain text,
    too; `running`: how many run, or should (0: those that are declared). The lists next to the configuration are for the entry point.
    """
    named = cluster.names
    files = {
        **_bookie_files(cluster, zookeeper_address, plaintext=plaintext),
        names.KNOWN_BOOKIES_KEY: "".join(f"{bookie_id}\n" for bookie_id in sorted(founded.served)),
        "cookies": "".join(f"{bookie_id}\n" for bookie_id in sorted(founded.cookies)),
        names.INSTANCE_ID_KEY: f"{founded.instance_id}\n",
    }
    return (
        pod.config_map(cluster, COMPONENT, named.config_map, files),
        pod.headless_service(cluster, COMPONENT, named.service, {"bookie": names.BOOKIE_PORT, "admin": names.BOOKIE_ADMIN_PORT}),
        pod.disruption_budget(cluster, COMPONENT, named.disruption_budget, max(0, (running or cluster.spec.bookies) - 1)),
    )


def build_bookie_token(cluster: BookKeeperCluster, token: str) -> Json:
    """Returns the Secret with the token of the bookies' admin port."""
    return secret_of(pod.metadata(cluster, COMPONENT, cluster.names.token_secret), {names.TOKEN_KEY: token})


def build_bookie_claims(cluster: BookKeeperCluster, bookie: BookieIdentity) -> tuple[Json, ...]:
    """Returns the claims of a new bookie, all with the same identity: the journal's, and one per ledger directory."""
    named = cluster.names

    def claim(name: str, spec: Json) -> Json:
        meta = pod.retained_metadata(cluster, COMPONENT, name)
        meta["labels"] = {**meta["labels"], names.BOOKIE_LABEL: str(bookie.number)}
        meta["annotations"] = {names.BOOKIE_ID_ANNOTATION: bookie.bookie_id}
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}

    return (
        claim(named.journal_claim(bookie.number), pod.claim_spec(cluster.spec.journal)),
        *(claim(name, pod.claim_spec(cluster.spec.ledgers)) for name in ledgers_claims(cluster, bookie.number)),
    )


def build_stopped_bookie(cluster: BookKeeperCluster, bookie: BookieIdentity, zookeeper_address: str) -> Json:
    """Returns the StatefulSet of a bookie that is no longer needed: without a pod, and marked as stopped by the operator."""
    running = build_bookie(cluster, bookie, zookeeper_address)
    meta = {**running["metadata"], "annotations": {names.RETIRING_ANNOTATION: bookie.bookie_id}}
    return {**running, "metadata": meta, "spec": {**running["spec"], "replicas": 0}}


def build_bookie(cluster: BookKeeperCluster, bookie: BookieIdentity, zookeeper_address: str, *, plaintext: bool = False) -> Json:
    """Returns a bookie's StatefulSet (one replica). Apply a changed one only while the stack is Ready. See build_bookies_shared()."""
    named, folders, identity = cluster.names, _ledger_folders(cluster), identity_of(cluster, zookeeper_address)
    selector = {**names.selector(COMPONENT, cluster.metadata.name), names.BOOKIE_LABEL: str(bookie.number)}
    container = {
        "name": "bookie",
        "image": image_of(cluster),
        "args": ["bookie"],
        "env": [
            {"name": "BOOKIE_ID", "value": bookie.bookie_id},
            {"name": "ADVERTISED_ADDRESS", "value": named.host(bookie.number)},
            # the entry point knows this one; a further variable would restart existing bookies
            *([{"name": "LEDGER_VOLUMES", "value": " ".join(folders)}] if len(folders) > 1 else ()),
            *identity.variables,
            *pod.log_variables(cluster.spec.pods),
        ],
        "ports": pod.metrics_port(names.BOOKIE_ADMIN_PORT),
        "resources": pod.compute(cluster.spec.resources),
        "readinessProbe": pod.http_probe("/api/v1/bookie/is_ready", names.BOOKIE_ADMIN_PORT),
        # It answers once it has replayed its journal. A replay that is ended begins anew, so it would never end.
        "startupProbe": pod.http_probe("/heartbeat", names.BOOKIE_ADMIN_PORT, REPLAY_PROBES),
        "livenessProbe": pod.http_probe("/heartbeat", names.BOOKIE_ADMIN_PORT, 6),
        "volumeMounts": [
            pod.CONFIG_MOUNT,
            {"name": "token", "mountPath": TOKEN_MOUNT, "readOnly": True},
            {"name": "journal", "mountPath": "/journal"},
            *({"name": folder.removeprefix("/"), "mountPath": folder} for folder in folders),
            *identity.mounts,
        ],
    }
    volumes = [
        pod.config_volume(named.config_map),
        {"name": "token", "secret": {"secretName": named.token_secret, "defaultMode": 0o440}},
        {"name": "journal", "persistentVolumeClaim": {"claimName": named.journal_claim(bookie.number)}},
        *(
            {"name": folder.removeprefix("/"), "persistentVolumeClaim": {"claimName": name}}
            for folder, name in zip(folders, ledgers_claims(cluster, bookie.number), strict=True)
        ),
        *identity.volumes,
    ]
    marks = {names.CONFIG_ANNOTATION: pod.config_hash(_bookie_files(cluster, zookeeper_address, plaintext=plaintext))}
    if plaintext and _asks_for_certificates(cluster, zookeeper_address):
        marks[names.PLAINTEXT_ANNOTATION] = "accepted"
    labels = {**names.labels(COMPONENT, cluster.KIND, cluster.metadata.name), names.BOOKIE_LABEL: str(bookie.number)}
    meta = {**pod.metadata(cluster, COMPONENT, named.stateful_set(bookie.number)), "labels": labels}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": meta,
        "spec": {
            "replicas": 1,
            "serviceName": named.service,
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": pod.template_metadata(labels, marks, cluster.spec.pods),
                # All bookies of the cluster are spread, whatever their number.
                "spec": {
                    **pod.pod_spec(cluster, container, volumes, 60),
                    **pod.placed(names.selector(COMPONENT, cluster.metadata.name), cluster.spec.pods),
                },
            },
        },
    }


def build_autorecovery(cluster: BookKeeperCluster, zookeeper_address: str, racks: Mapping[str, Rack]) -> tuple[Json, ...]:
    """Returns autorecovery's ConfigMap and Deployment, or nothing if it is disabled. It chooses the bookies that replace a lost one."""
    auto = cluster.spec.auto_recovery
    if not auto.enabled:
        return ()
    named, component, identity = cluster.names, names.AUTORECOVERY_COMPONENT, identity_of(cluster, zookeeper_address)
    placement = placement_of(cluster, racks)
    lines = {
        **placement_lines(placement),
        # Each batch is copied before the next. BookKeeper's default of 10 costs an fsync per ten entries, in drains too. A batch is held in
        # memory; an entry has at most 5 MB.
        "rereplicationEntryBatchSize": 100,
        "auditorPeriodicPlacementPolicyCheckInterval": 86400,
        "lostBookieRecoveryDelay": auto.lost_bookie_recovery_delay_seconds,
    }
    if (rate := copied_per_second(cluster)) is not None:
        lines["replicationRateByBytes"] = rate
    files = _files(cluster, zookeeper_address, lines)
    # A running daemon never looks up a rack twice, so a changed map restarts it.
    config = pod.config_hash({**files, **build_racks(cluster, racks)["data"]})
    selector = names.selector(component, cluster.metadata.name)
    container = {
        "name": "autorecovery",
        "image": image_of(cluster),
        "args": ["autorecovery"],
        # Without its own id, every daemon would be the auditor "<host>:3181". The pod's address always resolves.
        "env": [
            pod.field("BOOKIE_ID", "metadata.name"),
            pod.field("ADVERTISED_ADDRESS", "status.podIP"),
            *identity.variables,
            *pod.log_variables(cluster.spec.pods),
        ],
        "ports": pod.metrics_port(names.BOOKIE_ADMIN_PORT),
        "resources": pod.compute(auto.resources),
        # is_ready answers 500 here, since this process has no bookie.
        "readinessProbe": pod.http_probe("/heartbeat", names.BOOKIE_ADMIN_PORT),
        "livenessProbe": {**pod.http_probe("/heartbeat", names.BOOKIE_ADMIN_PORT, 6), "initialDelaySeconds": 120},
        "volumeMounts": [pod.CONFIG_MOUNT, MOUNT, *identity.mounts],
    }
    volumes = [pod.config_volume(named.autorecovery), racks_volume(placement.config_map), *identity.volumes]
    spec = {**pod.pod_spec(cluster, container, volumes, 30), **pod.placed(selector, cluster.spec.pods)}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": pod.metadata(cluster, component, named.autorecovery),
        "spec": {
            "replicas": auto.replicas,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": pod.template_metadata(
                    names.labels(component, cluster.KIND, cluster.metadata.name), {names.CONFIG_ANNOTATION: config}, cluster.spec.pods
                ),
                "spec": spec,
            },
        },
    }
    return (pod.config_map(cluster, component, named.autorecovery, files), deployment)


def copied_per_second(cluster: BookKeeperCluster) -> int | None:
    """Returns the most bytes per second that autorecovery or a drain copies. BookKeeper starts with no more than 32 bits hold."""
    rate = cluster.spec.auto_recovery.bytes_per_second
    return None if rate is None else min(bytes_of(rate), MOST)


def identity_of(cluster: BookKeeperCluster, zookeeper_address: str) -> PodIdentity:
    """Returns what bookies and autorecovery present to the ensemble, and bookies to their clients."""
    return java_identity(identity_secret(cluster, zookeeper_address))


def identity_secret(cluster: BookKeeperCluster, zookeeper_address: str) -> str | None:
    """Returns the Secret with the certificate of bookies and those who do their work, or None at this address."""
    return cluster.names.identity_secret if _asks_for_certificates(cluster, zookeeper_address) else None


def directories_of(cluster: BookKeeperCluster) -> tuple[str, tuple[str, ...]]:
    """Returns the journal directory and the ledger directories, as configuration and cookies name them."""
    return "/journal/journal", tuple(f"{folder}/ledgers" for folder in _ledger_folders(cluster))


def _ledger_folders(cluster: BookKeeperCluster) -> tuple[str, ...]:
    """Mount paths of the ledger volumes. They are part of the bookie's cookie, so they never change."""
    return tuple(f"/{names.ledgers_volume(volume)}" for volume in range(cluster.spec.ledgers.volumes))


def _garbage_collection(collection: GarbageCollection) -> dict[str, object]:
    minor, major = collection.minor_compaction, collection.major_compaction
    return {
        "gcWaitTime": collection.interval_seconds * 1000,
        "minorCompactionThreshold": minor.threshold_percent / 100,
        "minorCompactionInterval": minor.interval_seconds,
        "majorCompactionThreshold": major.threshold_percent / 100,
        "majorCompactionInterval": major.interval_seconds,
    }


def _journal_sync(sync: JournalSync) -> dict[str, object]:
    return {
        "journalMaxGroupWaitMSec": sync.max_group_wait_milliseconds,
        "journalBufferedWritesThreshold": bytes_of(sync.buffered_writes),
        "journalBufferedEntriesThreshold": sync.buffered_entries,
        "journalFlushWhenQueueEmpty": str(sync.flush_when_queue_empty).lower(),
    }


def _asks_for_certificates(cluster: BookKeeperCluster, zookeeper_address: str) -> bool:
    return names.secure_ensemble(zookeeper_address, cluster.metadata.namespace) is not None


def _bookie_files(cluster: BookKeeperCluster, zookeeper_address: str, *, plaintext: bool) -> dict[str, str]:
    """Files of bookies. With certificates alone, bookies admit the authorized users of this cluster."""
    asks = _asks_for_certificates(cluster, zookeeper_address) and not plaintext
    return _files(cluster, zookeeper_address, bookie_lines(cluster.metadata.name) if asks else None)


def _files(cluster: BookKeeperCluster, zookeeper_address: str, more: Mapping[str, object] | None = None) -> dict[str, str]:
    # The entry point gives a quarter of the limit to direct memory. Both caches together take at most half of that.
    cache = max(16, bytes_of(cluster.spec.resources.memory) // MIB // 16)
    smallest_volume = min(bytes_of(cluster.spec.journal.size), bytes_of(cluster.spec.ledgers.size))
    log_size = min(1024 * MIB, max(64 * MIB, smallest_volume // 20))
    journal, directories = directories_of(cluster)
    lines = {
        "bookiePort": names.BOOKIE_PORT,
        "metadataServiceUri": names.metadata_service_uri(zookeeper_address, cluster.names.ledgers_root),
        "journalDirectories": journal,
        "ledgerDirectories": ",".join(directories),
        "ledgerStorageClass": "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
        "dbStorage_writeCacheMaxSizeMb": cache,
        "dbStorage_readAheadCacheMaxSizeMb": cache,
        # BookKeeper divides the two caches among the directories, but each directory's index has its own block cache
        "dbStorage_rocksDB_blockCacheSize": cache * MIB // 2 // len(directories),
        "dbStorage_rocksDB_writeBufferSizeMB": 4,
        "journalMaxSizeMB": log_size // MIB,
        "journalPreAllocSizeMB": 4,
        "journalMaxBackups": 1,
        "logSizeLimit": log_size,
        "minUsableSizeForEntryLogCreation": log_size,
        "minUsableSizeForIndexFileCreation": 10 * MIB,
        # a ledger's id determines its directory: if one is full, some ledgers can't be written
        **({"readOnlyModeOnAnyDiskFullEnabled": "true"} if len(directories) > 1 else {}),
        "numAddWorkerThreads": 1,
        "numReadWorkerThreads": 2,
        "serverNumIOThreads": 2,
        **_garbage_collection(cluster.spec.garbage_collection),
        **_journal_sync(cluster.spec.journal_sync),
        "autoRecoveryDaemonEnabled": "false",
        "persistBookieStatusEnabled": "true",
        "httpServerEnabled": "true",
        "httpServerPort": names.BOOKIE_ADMIN_PORT,
        # for images of earlier versions: this version's entry point puts its guarded server here
        "httpServerClass": "org.apache.bookkeeper.http.vertx.VertxHttpServer",
        "statsProviderClass": "org.apache.bookkeeper.stats.prometheus.PrometheusMetricsProvider",
        "prometheusStatsHttpEnable": "false",
        **(bookkeeper_lines(FOLDER) if _asks_for_certificates(cluster, zookeeper_address) else {}),
        **(more or {}),
    }
    return {"bk_server.conf": pod.properties(lines, cluster.spec.config)}
