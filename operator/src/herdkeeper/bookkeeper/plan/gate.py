"""Why no serving bookie may be restarted now, and the order of restarts.

The auditor's marks are not enough: an auditor checks once a day, or when a bookie goes away. So the metadata of all ledgers is read, like
in a triggered audit: a ledger that names an unregistered bookie, or one that lost its volumes, lacks a copy.
"""

from __future__ import annotations

from collections.abc import Iterable

from herdkeeper.bookkeeper.build.bookies import BookieIdentity
from herdkeeper.bookkeeper.state.bookies import BeingScanned, MetadataStore
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.bookkeeper.state.racks import Rack
from herdkeeper.shared.counted import counted
from herdkeeper.shared.lost_node import trouble_of, unreachable
from herdkeeper.shared.objects import Json, why_gone, why_stopping
from herdkeeper.shared.unknown import Unknown


def restart_order(fleet: BookieFleet, identities: Iterable[BookieIdentity]) -> list[BookieIdentity]:
    """Returns the bookies rack by rack, the racks of a region together. Read-only bookies come last: a full disk may be the cause."""

    def place(identity: BookieIdentity) -> tuple[bool, str, str, int]:
        rack = fleet.racks.get(fleet.named.host(identity.number), Rack("", None))
        return (identity.bookie_id in fleet.known_metadata.read_only, rack.region or "", rack.name, identity.number)

    return sorted(identities, key=place)


def why_not_restart(fleet: BookieFleet, running: tuple[int, ...], identity: BookieIdentity) -> str | None:
    """Returns why not to restart this bookie; None if the rest of the stack serves with all copies. `running` bookies run, or should."""
    unhealthy = why_stack_unhealthy(fleet, running, identity)
    return unhealthy or _ledgers(fleet) or _too_few_writable(fleet, identity) or _too_few_racks(fleet, identity) or _disruption(fleet)


def why_stack_unhealthy(fleet: BookieFleet, running: tuple[int, ...], identity: BookieIdentity) -> str | None:
    """Returns why this bookie must not be restarted, whatever the ledgers' metadata says. None if that decides."""
    if isinstance(fleet.store, MetadataStore) and not fleet.store.serving:
        return "not all ZooKeeper members serve"
    return _autorecovery(fleet, running) or why_bookies_unhealthy(fleet, running, identity.number)


def why_bookies_unhealthy(fleet: BookieFleet, running: tuple[int, ...], restarting: int | None) -> str | None:
    """Returns which of the bookies that run, or should, does not serve, apart from the one that is to be restarted (None: none is).

    A registered bookie that is not Ready serves, but something is wrong with it: it blocks restarts of Ready bookies. It does not block
    others that are not Ready: a probe that fails everywhere must be repairable. Its session outlives its process for some seconds.
    """
    named, objects, machines = fleet.named, fleet.objects, fleet.machines
    unwell = restarting is not None and not objects.pod_ready(named.pod(restarting))
    for number in running:
        pod = objects.get("Pod", named.pod(number))
        stops = not runs(pod) or unreachable(objects, [named.pod(number)], machines)
        fine = not stops and fleet.is_registered(number) and (unwell or objects.pod_ready(named.pod(number)))
        if number != restarting and not fine:
            return f"{named.pod(number)} does not serve ({trouble_of(pod, machines)})"
    return None


def runs(pod: Json | None) -> bool:
    """Returns whether a bookie's pod has a process that nobody has asked to end."""
    return why_gone(pod) is None and why_stopping(pod) is None


def _autorecovery(fleet: BookieFleet, running: tuple[int, ...]) -> str | None:
    if not fleet.known_metadata.replication_enabled:
        pod = fleet.named.pod(min(running, default=0))
        return (
            "autorecovery is disabled in the metadata, so lost copies would not be replaced; enable it with "
            f"`kubectl exec -n {fleet.cluster.metadata.namespace} {pod} -- /opt/bookkeeper/entrypoint.sh shell autorecovery -e`"
        )
    enabled = fleet.cluster.spec.auto_recovery.enabled
    if enabled and fleet.known_metadata.auditor is None:
        return "no auditor is elected"
    if not fleet.known_metadata.under_replicated:
        return None
    return f"ledgers are under-replicated{'' if enabled else ', and nobody copies them: set spec.autoRecovery.enabled'}"


def _ledgers(fleet: BookieFleet) -> str | None:
    scan = fleet.scan
    if isinstance(scan, BeingScanned):
        return scan.why
    if scan is None or isinstance(scan, Unknown):
        return f"the ledgers could not be read: {scan.why if scan else 'they were not read'}"
    return scan.lacking_copies(fleet.holders)


def _too_few_writable(fleet: BookieFleet, identity: BookieIdentity) -> str | None:
    """A writer needs a spare writable bookie to replace the one that restarts."""
    largest = fleet.open_ensemble
    remaining = len((fleet.known_metadata.writable & fleet.holders) - {identity.bookie_id})
    if remaining >= largest or fleet.cluster.spec.roll_without_spare_bookie:
        return None
    return (
        f"{counted(remaining, 'writable bookie')} would remain, and ledgers need ensembles of {largest}: raise spec.bookies, or set "
        "spec.rollWithoutSpareBookie and accept that writes may wait"
    )


def _too_few_racks(fleet: BookieFleet, identity: BookieIdentity) -> str | None:
    """With placement.enforced a writer finds no other bookie if too few racks remain. If there are too few anyway, that does not count."""
    rule, quorums = fleet.placement_rule, [database.spec.ledgers.write_quorum for database in fleet.databases]
    needed = min(rule.minimum, max(quorums, default=rule.minimum))
    there = {bookie_id: rack for bookie_id, rack in rule.racks.items() if bookie_id in fleet.known_metadata.writable & fleet.holders}
    left = {rack for bookie_id, rack in there.items() if bookie_id != identity.bookie_id}
    spec = fleet.cluster.spec
    if len(left) >= needed or len(set(there.values())) < needed or not spec.placement.enforced or spec.roll_without_spare_bookie:
        return None
    return (
        f"the writable bookies that remain would be in {counted(len(left), 'rack')} ({', '.join(sorted(left))}), and "
        f"spec.placement.enforced wants copies in {needed}: start a bookie in another rack, or set spec.rollWithoutSpareBookie and accept "
        "that writes may wait"
    )


def _disruption(fleet: BookieFleet) -> str | None:
    """The rest of the stack. What waits for these bookies can't block them."""
    return fleet.disruption if len(fleet.known_metadata.writable) >= fleet.open_ensemble else None
