"""What is true of a BookKeeper cluster."""

from __future__ import annotations

import datetime
from typing import Any

from herdkeeper.api import BookKeeperCluster
from herdkeeper.domain import known_config, names
from herdkeeper.domain.conditions import CONFIG_KNOWN
from herdkeeper.domain.names import BookKeeperNames, ObjectKey
from herdkeeper.domain.observed.bookkeeper import BookKeeperObserved, LedgersMetadata, MetadataStore
from herdkeeper.domain.observed.objects import Objects, annotation, pod_trouble
from herdkeeper.domain.racks import policy_for, racks_of
from herdkeeper.domain.reason import Reason
from herdkeeper.domain.unknown import Unknown
from herdkeeper.status.summary import Health, Summary

WRITABLE, READ_ONLY, STARTING, AWAY = "Writable", "ReadOnly", "Starting", "Away"


def summarize_bookkeeper(cluster: BookKeeperCluster, seen: BookKeeperObserved) -> Summary:
    """Ready when each bookie is registered as writable, its pod is Ready, and autorecovery runs where it is enabled."""
    named = _names(cluster)
    bookies = _bookies(cluster, seen)
    serving = [
        bookie["number"] for bookie in bookies if bookie["state"] == WRITABLE and seen.objects.pod_ready(named.pod(bookie["number"]))
    ]
    metadata = seen.metadata if isinstance(seen.metadata, LedgersMetadata) else None
    store = seen.store if isinstance(seen.store, MetadataStore) else None
    before = cluster.status
    fields = {
        "zooKeeperAddress": store.address if store else (before.zoo_keeper_address if before else None),
        "ledgersRoot": named.ledgers_root,
        "metadataServiceUri": names.metadata_service_uri(store.address, named.ledgers_root) if store else None,
        # remembered: metadata that is gone later must not be made anew
        "instanceId": metadata.instance_id if metadata else (before.instance_id if before else None),
        "readyBookies": len(serving),
        "auditor": metadata.auditor if metadata else None,
        "underReplicated": metadata.under_replicated if metadata else None,
        "underReplicatedLedgers": metadata.marks.ledgers if metadata else None,
        "underReplicatedSince": _time(metadata.marks.oldest_ms) if metadata else None,
        "replicationEnabled": metadata.replication_enabled if metadata else None,
        "placementPolicy": policy_for(racks_of(cluster, seen.objects, seen.nodes)).value,
        "bookies": bookies or None,
    }
    return Summary(_health(cluster, seen, serving), fields, _conditions(cluster))


def _conditions(cluster: BookKeeperCluster) -> dict[str, Health]:
    unknown = known_config.unknown_keys(cluster.spec.config, known_config.BOOKKEEPER)
    if not unknown:
        return {}
    message = f"BookKeeper 4.18 knows no setting {', '.join(unknown)}: the line in spec.config has no effect; correct or remove it"
    return {CONFIG_KNOWN: Health("False", Reason.UNKNOWN_CONFIG_KEYS, message)}


def _time(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    return datetime.datetime.fromtimestamp(milliseconds // 1000, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _bookies(cluster: BookKeeperCluster, seen: BookKeeperObserved) -> list[dict[str, Any]]:
    named = _names(cluster)
    racks = racks_of(cluster, seen.objects, seen.nodes)
    found = []
    for number in range(cluster.spec.bookies):
        claims = (seen.objects.get("PersistentVolumeClaim", name) for name in (named.journal_claim(number), named.ledgers_claim(number)))
        bookie_id = next((annotation(claim, names.BOOKIE_ID_ANNOTATION) for claim in claims if claim is not None), None)
        if bookie_id is not None:
            state = _state(bookie_id, seen, seen.objects.get("Pod", named.pod(number)) is not None)
            rack = racks.get(named.host(number))
            place = {"rack": rack.name if rack else None, "region": rack.region if rack else None}
            found.append({"number": number, "bookieId": bookie_id, "state": state, **{key: value for key, value in place.items() if value}})
    return found


def _state(bookie_id: str, seen: BookKeeperObserved, has_pod: bool) -> str:
    metadata = seen.metadata
    if isinstance(metadata, LedgersMetadata):
        if bookie_id in metadata.writable:
            return WRITABLE
        if bookie_id in metadata.read_only:
            return READ_ONLY
        return STARTING if has_pod else AWAY
    return "Unknown" if isinstance(metadata, Unknown) else STARTING


def _health(cluster: BookKeeperCluster, seen: BookKeeperObserved, serving: list[int]) -> Health:
    if isinstance(seen.metadata, Unknown):
        return Health("Unknown", Reason.UNREADABLE, seen.metadata.why)
    named, wanted = _names(cluster), cluster.spec.bookies
    away = [number for number in range(wanted) if number not in serving]
    if away:
        shown = "; ".join(f"{named.pod(number)}: {_trouble(seen.objects, named.pod(number))}" for number in away)
        return Health("False", Reason.BOOKIES_NOT_READY, f"{len(serving)} of {wanted} bookies are writable ({shown})")
    if cluster.spec.auto_recovery.enabled and not _autorecovery_runs(cluster, seen.objects):
        return Health("False", Reason.AUTORECOVERY_NOT_READY, f"the bookies serve, but not all pods of {named.autorecovery} are Ready")
    return Health("True", Reason.READY, f"{len(serving)} bookies are writable")


def _trouble(objects: Objects, pod: str) -> str:
    return "not registered as writable" if objects.pod_ready(pod) else pod_trouble(objects.get("Pod", pod))


def _autorecovery_runs(cluster: BookKeeperCluster, objects: Objects) -> bool:
    deployment = objects.get("Deployment", _names(cluster).autorecovery)
    ready = (deployment or {}).get("status", {}).get("readyReplicas") or 0
    return bool(ready >= cluster.spec.auto_recovery.replicas)


def _names(cluster: BookKeeperCluster) -> BookKeeperNames:
    return BookKeeperNames(ObjectKey(cluster.metadata.namespace, cluster.metadata.name))
