"""Derives the status of a BookKeeper cluster."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from herdkeeper.api import BookKeeperCluster
from herdkeeper.bookkeeper.drain.build import BYTES_KEY
from herdkeeper.bookkeeper.drain.procedure import DrainingBookie, JobState
from herdkeeper.bookkeeper.drain.state import Drain
from herdkeeper.bookkeeper.plan.gate import runs
from herdkeeper.bookkeeper.plan.placement_check import placement_check
from herdkeeper.bookkeeper.state import known_config
from herdkeeper.bookkeeper.state.bookies import LedgerScan, LedgersMetadata, MetadataStore
from herdkeeper.bookkeeper.state.claims import known_instance_id
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.bookkeeper.state.lost_bookie import LostBookie
from herdkeeper.bookkeeper.state.numbers import next_number
from herdkeeper.bookkeeper.state.racks import policy_for
from herdkeeper.planning.lost_node import nodes_reachable
from herdkeeper.planning.summary import Health, Summary
from herdkeeper.shared import names, quantity
from herdkeeper.shared.conditions import CONFIG_KNOWN, ENCRYPTED, condition
from herdkeeper.shared.counted import counted
from herdkeeper.shared.lost_node import trouble_of
from herdkeeper.shared.objects import Json
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import moment_of_millis, text_of
from herdkeeper.shared.unknown import Unknown

WRITABLE, READ_ONLY, STARTING, AWAY, STOPPED, LOST = "Writable", "ReadOnly", "Starting", "Away", "Stopped", "Lost"


def summarize_bookkeeper(fleet: BookieFleet) -> Summary:
    """Returns Ready if each bookie that stays is registered as writable with a Ready pod, and enabled autorecovery runs."""
    cluster, named, numbers = fleet.cluster, fleet.named, fleet.numbers
    metadata = fleet.metadata if isinstance(fleet.metadata, LedgersMetadata) else None
    bookies = _bookies(fleet)
    writable = [bookie["number"] for bookie in bookies if bookie["state"] == WRITABLE]
    serving = [number for number in writable if number in numbers.staying and fleet.objects.pod_ready(named.pod(number))]
    store = fleet.store if isinstance(fleet.store, MetadataStore) else None
    before, address = cluster.status, fleet.clients_address if store else None
    fields = {
        "zooKeeperAddress": address or (before.zoo_keeper_address if before else None),
        "ledgersRoot": named.ledgers_root,
        "metadataServiceUri": names.metadata_service_uri(address, named.ledgers_root) if address else None,
        "acceptsPlaintext": (fleet.plaintext or None) if store else (before.accepts_plaintext if before else None),
        # remembered: metadata that is missing or replaced later must not be taken for this cluster's
        "instanceId": known_instance_id(cluster, fleet.objects) or (metadata.instance_id if metadata else None),
        # Unknown is not the same as none writable. One that is to leave is writable until its drain begins, which may wait for long.
        # A failed probe ends no bookie, nor does a machine that the API server does not reach. A session outlives its process by seconds.
        "readyBookies": None if isinstance(fleet.metadata, Unknown) else sum(runs(_pod(fleet, number)) for number in writable),
        "auditor": metadata.auditor if metadata else None,
        "underReplicated": metadata.under_replicated if metadata else None,
        "underReplicatedLedgers": metadata.marks.ledgers if metadata else None,
        "underReplicatedSince": _time(metadata.marks.oldest_ms) if metadata else None,
        "replicationEnabled": metadata.replication_enabled if metadata else None,
        "placementCheck": placement_check(fleet),
        "placementPolicy": policy_for(fleet.racks).value,
        # remembered as well: nothing is left of drained bookies with the highest numbers
        "nextBookie": next_number(cluster, numbers.existing) if metadata else (before.next_bookie if before else None),
        "bookies": bookies or None,
    }
    states = {bookie["number"]: bookie["state"] for bookie in bookies}
    hanging = nodes_reachable(fleet.objects, map(named.pod, numbers.existing), fleet.machines, _replication_of_lost(cluster, metadata))
    return Summary(_health(fleet, serving, states), fields, {**_conditions(cluster), **_encrypted(fleet), **hanging})


def _pod(fleet: BookieFleet, number: int) -> Json | None:
    return fleet.objects.get("Pod", fleet.named.pod(number))


def _encrypted(fleet: BookieFleet) -> dict[str, Health]:
    """Returns the condition Encrypted by its type, or nothing without plain text or certificates; the previous one while unknown."""
    before = condition(fleet.cluster, ENCRYPTED)
    if before is not None and not isinstance(fleet.store, MetadataStore):
        return {ENCRYPTED: Health("False", Reason.PLAINTEXT_ACCEPTED, before.message)}
    if not fleet.plaintext and not fleet.open_pods:
        return {}
    until = "" if fleet.plaintext else f", until these have restarted: {', '.join(fleet.open_pods)}"
    message = f"plain text is accepted: every client that reaches the bookies can read and change the log{until}"
    return {ENCRYPTED: Health("False", Reason.PLAINTEXT_ACCEPTED, message)}


def _replication_of_lost(cluster: BookKeeperCluster, metadata: LedgersMetadata | None) -> str:
    """What happens to the ledgers of bookies that are away."""
    delay = cluster.spec.auto_recovery.lost_bookie_recovery_delay_seconds
    if metadata is None:
        return "It is unknown whether its ledgers are copied."
    if not cluster.spec.auto_recovery.enabled or not metadata.replication_enabled:
        return "Its ledgers are not copied, since autorecovery is off. Rolls and drains wait."
    marked = counted(metadata.marks.ledgers, "ledger is", "ledgers are")
    copied = f"{marked} marked for it" if metadata.under_replicated else f"it begins after {delay} s"
    return f"Autorecovery copies its ledgers to other bookies ({copied}). Rolls and drains wait."


def _conditions(cluster: BookKeeperCluster) -> dict[str, Health]:
    unknown = known_config.unknown_keys(cluster.spec.config, known_config.BOOKKEEPER)
    if not unknown:
        return {}
    message = f"BookKeeper 4.18 does not know {', '.join(unknown)}: the line in spec.config has no effect; correct or remove it"
    return {CONFIG_KNOWN: Health("False", Reason.UNKNOWN_CONFIG_KEYS, message)}


def _time(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else text_of(moment_of_millis(milliseconds))


def _bookies(fleet: BookieFleet) -> list[dict[str, Any]]:
    leaving = {drain.number: drain for drain in fleet.drains} if isinstance(fleet.metadata, LedgersMetadata) else {}
    found = []
    for number, ids in fleet.ids.items():
        if ids:
            lost = next((each for each in fleet.numbers.lost if each.number == number), None)
            rack = fleet.racks.get(fleet.named.host(number))
            place = {"rack": rack.name if rack else None, "region": rack.region if rack else None}
            entry = {"number": number, "bookieId": ids[0], "state": _state(fleet, number, ids[0])}
            entry |= {key: value for key, value in place.items() if value} | _lost(fleet, lost)
            found.append(entry | ({"drain": drain_fields(fleet, leaving[number])} if number in leaving else {}))
    return found


def _lost(fleet: BookieFleet, lost: LostBookie | None) -> dict[str, Any]:
    """Fields of a lost bookie: what still needs it, as far as known."""
    if lost is None:
        return {}
    if not isinstance(fleet.scan, LedgerScan):
        return {"state": LOST}
    naming = [fleet.scan.naming[bookie_id] for bookie_id in lost.ids if bookie_id in fleet.scan.naming]
    return {"state": LOST, "ledgersLeft": sum(each.closed + each.not_closed for each in naming)}


def drain_fields(fleet: BookieFleet, drain: Drain) -> dict[str, Any]:
    fields: dict[str, Any] = {"message": drain.step.sentence}
    if isinstance(drain.bookie, DrainingBookie):
        shares = drain.bookie.shares
        left = sum(share.payload_bytes for share in shares)
        fields |= {"ledgers": len(shares), "openLedgers": sum(share.written for share in shares), "bytes": left}
        seconds = _seconds_left(fleet, drain.bookie, left)
        fields |= {} if seconds is None else {"secondsLeft": seconds}
    return fields


def _seconds_left(fleet: BookieFleet, bookie: DrainingBookie, left: int) -> int | None:
    """Estimated from what the running round has moved so far; None while unknown. A record from an earlier drain is too old for that."""
    running = next((begun for begun in bookie.rounds if begun.job is JobState.RUNNING and not begun.kept), None)
    record = fleet.objects.get("ConfigMap", fleet.named.drain_round(bookie.number, running.number)) if running else None
    if record is None or not fleet.now:
        return None
    recorded = quantity.parsed((record.get("data") or {}).get(BYTES_KEY))
    moved = 0 if recorded is None else int(recorded) - left  # somebody may have changed the record
    elapsed = _seconds(fleet.now) - _seconds(record["metadata"]["creationTimestamp"])
    return round(elapsed * left / moved) if moved > 0 and elapsed > 0 else None  # the record has the API server's clock


def _seconds(timestamp: str) -> float:
    return datetime.datetime.fromisoformat(timestamp).timestamp()


def _state(fleet: BookieFleet, number: int, bookie_id: str) -> str:
    metadata = fleet.metadata
    if fleet.is_stopped(number):
        return STOPPED
    has_pod = _pod(fleet, number) is not None
    if isinstance(metadata, LedgersMetadata):
        if bookie_id in metadata.writable:
            return WRITABLE
        if bookie_id in metadata.read_only:
            return READ_ONLY
        return STARTING if has_pod else AWAY
    return "Unknown" if isinstance(metadata, Unknown) else STARTING


def _health(fleet: BookieFleet, serving: list[int], states: Mapping[int, str]) -> Health:
    if isinstance(fleet.metadata, Unknown):
        return Health("Unknown", Reason.UNREADABLE, fleet.metadata.why)
    named, numbers, wanted = fleet.named, fleet.numbers, fleet.cluster.spec.bookies
    away = [number for number in numbers.wanted if number not in serving]
    if away:
        shown = "; ".join(f"{named.pod(number)}: {_trouble(fleet, named.pod(number), states.get(number))}" for number in away)
        of_all = counted(wanted, "bookie is", "bookies are")
        known = isinstance(fleet.metadata, LedgersMetadata) and not numbers.lost
        missing = serving and known and not any(map(fleet.is_made, away))
        reason = Reason.BOOKIES_MISSING if missing else Reason.BOOKIES_NOT_READY
        return Health("False", reason, f"{len(serving)} of {of_all} writable ({shown})")
    if fleet.cluster.spec.auto_recovery.enabled and not _autorecovery_runs(fleet):
        serve = f"the bookies serve, but not all pods of {named.autorecovery} are Ready ({fleet.trouble_of_autorecovery})"
        return Health("False", Reason.AUTORECOVERY_NOT_READY, serve)
    disabled = isinstance(fleet.metadata, LedgersMetadata) and not fleet.metadata.replication_enabled
    if fleet.cluster.spec.auto_recovery.enabled and disabled:
        pod = f"-n {fleet.cluster.metadata.namespace} {named.pod((serving or numbers.existing)[0])}"
        how = f"`kubectl exec {pod} -- /opt/bookkeeper/entrypoint.sh shell autorecovery -e`"
        off = "the bookies serve, but autorecovery is disabled in BookKeeper's metadata, so lost copies are not replaced"
        return Health("False", Reason.AUTORECOVERY_DISABLED, f"{off}: enable it with {how}")
    leaving = f"; being drained: {', '.join(map(named.stateful_set, numbers.leaving))}" if numbers.leaving else ""
    lost = f"; lost, and replaced: {', '.join(named.stateful_set(each.number) for each in numbers.lost)}" if numbers.lost else ""
    return Health("True", Reason.READY, f"{counted(len(serving), 'bookie is', 'bookies are')} writable{leaving}{lost}")


def _trouble(fleet: BookieFleet, name: str, state: str | None) -> str:
    if state == READ_ONLY:
        most = fleet.cluster.spec.config.get("diskUsageThreshold", "0.95")
        return f"read-only: a volume is fuller than diskUsageThreshold ({most}), or somebody made it read-only; it still serves reads"
    if fleet.objects.pod_ready(name):
        return "not registered as writable"
    pod = fleet.objects.get("Pod", name)
    return trouble_of(pod, fleet.machines)


def _autorecovery_runs(fleet: BookieFleet) -> bool:
    deployment = fleet.objects.get("Deployment", fleet.named.autorecovery)
    ready = (deployment or {}).get("status", {}).get("readyReplicas") or 0
    return bool(ready >= fleet.cluster.spec.auto_recovery.replicas)
