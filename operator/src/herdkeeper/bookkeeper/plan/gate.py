"""Why no serving bookie may be restarted now, and in which order they are.

The gate asks for more than the auditor's marks: an auditor looks once a day, or when a bookie goes. So the metadata of all ledgers is read
here, which is what an audit that one triggers does: a ledger that names a bookie which is not registered lacks a copy.
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
    """One rack after another, those of one region together; bookies that are read-only last, since they may be so for a full disk."""

    def place(identity: BookieIdentity) -> tuple[bool, str, str, int]:
        rack = racks.get(named.host(identity.number), Rack("", None))
        return (identity.bookie_id in metadata.read_only, rack.region or "", rack.name, identity.number)

    return sorted(identities, key=place)


@dataclass(frozen=True)
class Stack:
    """What must be free of disruptions before a serving bookie is restarted. `numbers` are the bookies that run, or shall."""

    cluster: BookKeeperCluster
    seen: BookKeeperObserved
    metadata: LedgersMetadata
    numbers: tuple[int, ...]

    @property
    def named(self) -> BookKeeperNames:
        """The names of the cluster's objects."""
        return self.cluster.names

    def is_registered(self, number: int) -> bool:
        """Whether a bookie of this number serves, as far as BookKeeper knows."""
        return any(self.named.number_of(bookie_id) == number for bookie_id in self.metadata.writable | self.metadata.read_only)

    @property
    def largest_ensemble(self) -> int:
        """Of the ledgers that are being written; 0 while they were not read."""
        return self.seen.scan.open_ensemble if isinstance(self.seen.scan, LedgerScan) else 0


def why_not_restart(identity: BookieIdentity, stack: Stack) -> str | None:
    """The reason, None when this bookie may be restarted: the rest of the stack serves, and every entry has its replicas."""
    if isinstance(stack.seen.store, MetadataStore) and not stack.seen.store.serving:
        return "not all ZooKeeper members serve"
    own = _autorecovery(stack) or why_others_unhealthy(stack, identity.number) or _ledgers(stack) or _too_few(identity, stack)
    return own or _disruption(stack)


def why_others_unhealthy(stack: Stack, but: int | None) -> str | None:
    """Which of the bookies, except number `but`, does not serve.

    One that is registered and not Ready serves, and yet something is wrong with it: it holds up whatever is Ready. It does not block a
    bookie that is not Ready itself, or a probe that fails everywhere could never be fixed.
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
    """Why ledgers lack copies, whether an auditor has marked them yet or not: they name bookies, except `but`, that are not registered."""
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


def _too_few(identity: BookieIdentity, stack: Stack) -> str | None:
    """A writer needs as many writable bookies as its ensemble has, to put another one in the place of the one that restarts."""
    largest = stack.largest_ensemble
    remaining = len(stack.metadata.writable - {identity.bookie_id})
    if remaining >= largest or stack.cluster.spec.roll_without_spare_bookie:
        return None
    return (
        f"{remaining} writable bookies would remain, and ledgers are written to ensembles of {largest}: raise spec.bookies, or take the "
        "risk that writes wait with spec.rollWithoutSpareBookie"
    )


def _disruption(stack: Stack) -> str | None:
    """The rest of the stack. What lacks bookies waits for these, and can't be waited for by them."""
    return stack.seen.disruption if len(stack.metadata.writable) >= stack.largest_ensemble else None
