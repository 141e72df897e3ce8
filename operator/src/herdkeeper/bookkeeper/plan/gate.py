"""Why no serving bookie may be restarted now, and the order of restarts.

The auditor's marks are not enough: an auditor checks once a day, or when a bookie goes away. So the metadata of all ledgers is read, like
in a triggered audit: a ledger that names an unregistered bookie lacks a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from herdkeeper.api import BookKeeperCluster
from herdkeeper.bookkeeper.build.bookies import BookieIdentity
from herdkeeper.bookkeeper.state.bookies import BookKeeperObserved, LedgerScan, LedgersMetadata, MetadataStore
from herdkeeper.bookkeeper.state.racks import Rack
from herdkeeper.shared.lost_node import trouble_of, unreachable
from herdkeeper.shared.names import BookKeeperNames
from herdkeeper.shared.unknown import Unknown


def restart_order(
    identities: Iterable[BookieIdentity], racks: Mapping[str, Rack], named: BookKeeperNames, metadata: LedgersMetadata
) -> list[BookieIdentity]:
    """Returns the bookies rack by rack, the racks of a region together. Read-only bookies come last: a full disk may be the cause."""

    def place(identity: BookieIdentity) -> tuple[bool, str, str, int]:
        rack = racks.get(named.host(identity.number), Rack("", None))
        return (identity.bookie_id in metadata.read_only, rack.region or "", rack.name, identity.number)

    return sorted(identities, key=place)


@dataclass(frozen=True)
class Stack:
    """What must be free of disruptions before a serving bookie is restarted. `numbers` are the bookies that run, or should."""

    cluster: BookKeeperCluster
    seen: BookKeeperObserved
    metadata: LedgersMetadata
    numbers: tuple[int, ...]

    @property
    def named(self) -> BookKeeperNames:
        """Names of the cluster's objects."""
        return self.cluster.names

    def is_registered(self, number: int) -> bool:
        """Returns whether a bookie of this number is registered."""
        return any(self.named.number_of(bookie_id) == number for bookie_id in self.metadata.writable | self.metadata.read_only)

    @property
    def largest_ensemble(self) -> int:
        """Largest ensemble of the ledgers being written; 0 while they were not read."""
        return self.seen.scan.open_ensemble if isinstance(self.seen.scan, LedgerScan) else 0


def why_not_restart(identity: BookieIdentity, stack: Stack) -> str | None:
    """Returns why this bookie must not be restarted. None if the rest of the stack serves and every entry has its replicas."""
    if isinstance(stack.seen.store, MetadataStore) and not stack.seen.store.serving:
        return "not all ZooKeeper members serve"
    own = _autorecovery(stack) or why_others_unhealthy(stack, identity.number) or _ledgers(stack) or _too_few_writable(identity, stack)
    return own or _disruption(stack)


def why_others_unhealthy(stack: Stack, but: int | None) -> str | None:
    """Returns which bookie, except number `but`, does not serve.

    A registered bookie that is not Ready serves, but something is wrong with it: it blocks restarts of Ready bookies. It does not block
    others that are not Ready: a probe that fails everywhere must be repairable.
    """
    named, objects, nodes = stack.named, stack.seen.objects, stack.seen.nodes
    unwell = but is not None and not objects.pod_ready(named.pod(but))
    for number in stack.numbers:
        pod = objects.get("Pod", named.pod(number))
        stops = pod is None or pod["metadata"].get("deletionTimestamp") or unreachable(objects, [named.pod(number)], nodes)
        fine = not stops and stack.is_registered(number) and (unwell or objects.pod_ready(named.pod(number)))
        if number != but and not fine:
            return f"{named.pod(number)} does not serve ({trouble_of(pod, nodes)})"
    return None


def lacking_copies(scan: LedgerScan, metadata: LedgersMetadata, but: frozenset[str] = frozenset()) -> str | None:
    """Returns why ledgers lack copies, marked by an auditor or not: they name bookies, except `but`, that are not registered."""
    lost = sorted(set(scan.naming) - metadata.writable - metadata.read_only - but)
    if not lost:
        return None
    ledgers = sum(scan.naming[bookie_id].closed + scan.naming[bookie_id].not_closed for bookie_id in lost)
    return f"{ledgers} ledgers name bookies that are not registered ({', '.join(lost[:3])}), so they lack copies"


def _autorecovery(stack: Stack) -> str | None:
    if not stack.metadata.replication_enabled:
        pod = stack.named.pod(min(stack.numbers, default=0))
        return (
            "autorecovery is disabled in the metadata, so lost copies would not be replaced; enable it with "
            f"`kubectl exec {pod} -- /opt/bookkeeper/entrypoint.sh shell autorecovery -e`"
        )
    if stack.cluster.spec.auto_recovery.enabled and stack.metadata.auditor is None:
        return "no auditor is elected"
    return "ledgers are under-replicated" if stack.metadata.under_replicated else None


def _ledgers(stack: Stack) -> str | None:
    scan = stack.seen.scan
    if scan is None or isinstance(scan, Unknown):
        return f"the ledgers could not be read: {scan.why if scan else 'they were not read'}"
    return lacking_copies(scan, stack.metadata)


def _too_few_writable(identity: BookieIdentity, stack: Stack) -> str | None:
    """A writer needs a spare writable bookie to replace the one that restarts."""
    largest = stack.largest_ensemble
    remaining = len(stack.metadata.writable - {identity.bookie_id})
    if remaining >= largest or stack.cluster.spec.roll_without_spare_bookie:
        return None
    return (
        f"{remaining} writable bookies would remain, and ledgers need ensembles of {largest}: raise spec.bookies, or set "
        "spec.rollWithoutSpareBookie and accept that writes may wait"
    )


def _disruption(stack: Stack) -> str | None:
    """The rest of the stack. What waits for these bookies can't block them."""
    return stack.seen.disruption if len(stack.metadata.writable) >= stack.largest_ensemble else None
