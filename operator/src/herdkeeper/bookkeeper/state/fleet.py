"""The bookies of a BookKeeperCluster: what is declared, what was observed, and what follows from both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from herdkeeper.api import BookKeeperCluster, HerdDBCluster
from herdkeeper.bookkeeper.drain.procedure import ClusterState, DrainingBookie
from herdkeeper.bookkeeper.drain.state import Drain, drains_of, job_state_of, mode_of, rounds_of, unread_of, why_held_up, why_too_few_racks
from herdkeeper.bookkeeper.state.bookies import LedgerScan, LedgersMetadata, Metadata, MetadataStore
from herdkeeper.bookkeeper.state.claims import bookie_ids, claims_of, with_claimed_sizes
from herdkeeper.bookkeeper.state.numbers import BookieNumbers, bookie_numbers, ids_that_served, scaled_to_zero
from herdkeeper.bookkeeper.state.racks import Rack, racks_of, rule_of, unlabelled
from herdkeeper.certificates.holders import NOTHING_DUE, DueSecrets
from herdkeeper.codecs.bookkeeper.placement import PlacementRule
from herdkeeper.shared import names
from herdkeeper.shared.dependents import NO_DEPENDENTS, Dependents
from herdkeeper.shared.lost_node import trouble_of
from herdkeeper.shared.names import BookKeeperNames
from herdkeeper.shared.node import Nodes
from herdkeeper.shared.objects import Objects, annotation, is_ready, label, mounts
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.unknown import Unknown

NOT_SCANNED = Unknown("ledgers were not scanned")


@dataclass(frozen=True)
class BookieFleet:
    """A BookKeeperCluster as declared and as observed. Each derived value is computed once.

    `fresh_tokens` are random, one per possible new bookie, for the identities of new claims. `dependents` are the HerdDBClusters that refer
    to the cluster. `disruption` is which ensemble member or SQL node is being disrupted, or None. `machines` are the Kubernetes nodes of
    its bookies' pods, by name; None for a missing one. `scan` is None while no step needs it. `now` is the time of the observation (RFC
    3339, UTC). `expandable`: whether StorageClasses of growing claims allow expansion. `identities` are the due Secrets with certificates.
    `token` is that of the bookies' admin port, or a random one for a new Secret.
    """

    cluster: BookKeeperCluster
    objects: Objects
    store: MetadataStore | Problem
    metadata: Metadata
    fresh_tokens: tuple[str, ...]
    dependents: Dependents = NO_DEPENDENTS
    disruption: str | None = None
    machines: Nodes = field(default_factory=dict)
    scan: LedgerScan | Unknown | None = None
    now: str = ""
    expandable: Mapping[str, bool | Unknown] = field(default_factory=dict)
    identities: DueSecrets = NOTHING_DUE
    token: str = field(default="", repr=False)

    @property
    def named(self) -> BookKeeperNames:
        return self.cluster.names

    @property
    def known_metadata(self) -> LedgersMetadata:
        """BookKeeper's metadata. Raises ValueError if it was not read: a plan for bookies needs it."""
        if not isinstance(self.metadata, LedgersMetadata):
            raise ValueError("BookKeeper's metadata was not read")
        return self.metadata

    @property
    def zookeeper_address(self) -> str:
        """`host:port,host:port` of the metadata's ensemble. Raises ValueError if there is none."""
        if not isinstance(self.store, MetadataStore):
            raise ValueError(self.store.why)
        return self.store.address

    @property
    def plaintext(self) -> bool:
        """Whether bookies have certificates and accept plain text, too."""
        store, namespace = self.store, self.cluster.metadata.namespace
        return isinstance(store, MetadataStore) and store.plaintext and names.secure_ensemble(store.address, namespace) is not None

    @cached_property
    def open_pods(self) -> tuple[str, ...]:
        """The pods of bookies that accept plain text, though the ensemble asks for certificates."""
        store, namespace = self.store, self.cluster.metadata.namespace
        if not isinstance(store, MetadataStore) or names.secure_ensemble(store.address, namespace) is None:
            return ()
        pods = [pod for number in self.numbers.existing if (pod := self.objects.get("Pod", self.named.pod(number))) is not None]
        marked = [pod for pod in pods if annotation(pod, names.PLAINTEXT_ANNOTATION) is not None]
        return tuple(pod["metadata"]["name"] for pod in pods if pod in marked or not mounts(pod, self.named.identity_secret))

    @cached_property
    def clients_address(self) -> str:
        """The address to publish, which tells clients of bookies what to speak: certificates once all bookies have some, and none leaves.
        Then it stays. Raises ValueError if there is none.
        """
        address, namespace = self.zookeeper_address, self.cluster.metadata.namespace
        published = self.cluster.status.zoo_keeper_address if self.cluster.status is not None else None
        if not self.plaintext or (published is not None and names.secure_ensemble(published, namespace) is not None):
            return address
        pods = {number: pod for number in self.numbers.existing if (pod := self.objects.get("Pod", self.named.pod(number))) is not None}
        everybody = bool(pods) and not self.numbers.leaving and set(self.numbers.wanted) <= pods.keys()
        ready = (everybody or published is None) and all(mounts(pod, self.named.identity_secret) for pod in pods.values())
        return address if ready else names.plain_address(address)

    @cached_property
    def numbers(self) -> BookieNumbers:
        """Which bookies stay, leave, are new or lost."""
        return bookie_numbers(self.cluster, self.objects, self.metadata if isinstance(self.metadata, LedgersMetadata) else None)

    @cached_property
    def sized(self) -> BookKeeperCluster:
        """The cluster to build from: with the sizes that its claims have, also of bookies that leave: they may serve for long."""
        return with_claimed_sizes(self.cluster, (*self.numbers.wanted, *self.numbers.leaving), self.objects)

    @cached_property
    def ids(self) -> Mapping[int, tuple[str, ...]]:
        """The sorted ids of each existing bookie. More than one is an error; none is known of one whose claims have no mark."""
        return {number: bookie_ids(self.named, self.objects, self._cookies, number) for number in self.numbers.existing}

    @cached_property
    def racks(self) -> Mapping[str, Rack]:
        """The rack of each host, if known."""
        return racks_of(self.cluster, self.objects, self.machines)

    @cached_property
    def placement_rule(self) -> PlacementRule:
        """In how many racks copies must be."""
        return rule_of(self.cluster, self.racks, self._cookies)

    @cached_property
    def served_ids(self) -> frozenset[str]:
        """The ids that must not start on empty volumes."""
        return ids_that_served(self.named, self.objects, self.known_metadata)

    @property
    def holders(self) -> frozenset[str]:
        """The ids of registered bookies that have what they acknowledged. The session of one that lost volumes may outlive it."""
        return self.known_metadata.registered.difference(*(lost.registered for lost in self.numbers.lost))

    @property
    def databases(self) -> tuple[HerdDBCluster, ...]:
        """The HerdDBClusters on these bookies; empty while the ledgers were not read."""
        return self.scan.databases if isinstance(self.scan, LedgerScan) else ()

    @property
    def open_ensemble(self) -> int:
        """Largest ensemble of the ledgers being written; 0 while the ledgers were not read."""
        return self.scan.open_ensemble if isinstance(self.scan, LedgerScan) else 0

    @property
    def trouble_of_autorecovery(self) -> str:
        """Why the first of its pods that is not Ready is not, or that there is none."""
        made = [pod for pod in self.objects.of_kind("Pod") if label(pod, names.COMPONENT_LABEL) == names.AUTORECOVERY_COMPONENT]
        return trouble_of(next((pod for pod in made if not is_ready(pod)), None), self.machines)

    def is_registered(self, number: int) -> bool:
        return any(self.named.number_of(bookie_id) == number for bookie_id in self.known_metadata.registered)

    def is_made(self, number: int) -> bool:
        """Returns whether a bookie has its StatefulSet, or has served. Any other one has nothing yet that could be lost."""
        served = any(self.named.number_of(bookie_id) == number for bookie_id in self.served_ids)
        return served or self.objects.get("StatefulSet", self.named.stateful_set(number)) is not None

    def is_to_run(self, number: int) -> bool:
        """Returns whether a bookie runs, or should: it is made and not stopped. A lost one counts until it is retired."""
        return self.is_made(number) and not self.is_stopped(number)

    def is_stopped(self, number: int) -> bool:
        """Returns whether the operator stopped the bookie for good."""
        return scaled_to_zero(self.named, self.objects, number)

    @cached_property
    def drains(self) -> tuple[Drain, ...]:
        """All draining bookies, the one being emptied first. Raises ValueError if BookKeeper's metadata was not read."""
        return drains_of({number: self._draining_bookie(number) for number in self.numbers.leaving}, self._cluster_state)

    @cached_property
    def seen_before_a_scan(self) -> Any:
        """What a scan of the ledgers rests on. While it holds, no ledger has come to name a bookie that takes none, and no drain got on.
        Raises ValueError if BookKeeper's metadata was not read.
        """
        metadata = self.known_metadata
        registered = metadata.registrations, metadata.writable, metadata.read_only
        return registered, metadata.cookies, metadata.under_replicated, self.numbers.lost, self._without_shares

    def _draining_bookie(self, number: int) -> DrainingBookie | Unknown:
        bookie = self._without_shares[number]
        if isinstance(bookie, Unknown):
            return bookie
        if not isinstance(self.scan, LedgerScan):
            return self.scan or NOT_SCANNED
        writers = frozenset(node for database in self.databases for node in database.known_nodes)
        return replace(bookie, shares=self.scan.shares.get(bookie.bookie_id, ()), own_writers=writers)

    @cached_property
    def _without_shares(self) -> Mapping[int, DrainingBookie | Unknown]:
        """What is known of each draining bookie without the ledgers."""
        return {number: self._seen_of(number) for number in self.numbers.leaving}

    def _seen_of(self, number: int) -> DrainingBookie | Unknown:
        named, objects, metadata, ids = self.named, self.objects, self.known_metadata, self.ids[number]
        if len(ids) != 1:
            return Unknown(f"bookie {number} has {len(ids)} identities ({', '.join(ids)}), so it is not clear which one to drain")
        unread = unread_of(named, objects, number)
        if isinstance(unread, Unknown):
            return unread
        (bookie_id,) = ids
        claims = tuple(claim for claim in claims_of(self.cluster, number, objects).values() if claim is not None)
        pod = named.pod(number)
        return DrainingBookie(
            number=number,
            bookie_id=bookie_id,
            mode=mode_of(bookie_id, metadata),
            marked=any(names.DRAINING_ANNOTATION in claim.annotations for claim in claims),
            answers=objects.pod_ready(pod),
            pod_present=objects.get("Pod", pod) is not None,
            scaled_to_zero=self.is_stopped(number),
            shares=(),
            rounds=rounds_of(named, objects, number),
            cookie=bookie_id in metadata.cookies,
            retirement=job_state_of(objects, named.retire_job(number)),
            retirement_waits=why_held_up(objects, named.retire_job(number)),
            claims=claims,
            unread=unread,
        )

    @property
    def _cluster_state(self) -> ClusterState | Unknown:
        if not isinstance(self.scan, LedgerScan):
            return self.scan or NOT_SCANNED
        metadata, groups = self.known_metadata, (self.numbers.staying, self.numbers.leaving)
        staying, leaving = (frozenset(bookie_id for number in group for bookie_id in self.ids[number]) for group in groups)
        marked = "ledgers are under-replicated" if metadata.under_replicated else None
        return ClusterState(
            writable=len((staying & metadata.writable) - metadata.read_only),
            largest_ensemble=self.scan.largest_ensemble,
            autorecovery=self._why_no_autorecovery,
            lacking=marked or self.scan.lacking_copies(self.holders, but=leaving),
            too_few_racks=why_too_few_racks(rule_of(self.cluster, self._sure_racks, self._cookies), staying & metadata.writable),
        )

    @property
    def _sure_racks(self) -> Mapping[str, Rack]:
        """The racks without those of bookies that stay and may be in another's. A leaving one may be the only one of its rack."""
        leaving = frozenset(map(self.named.host, self.numbers.leaving))
        unsure = unlabelled(self.cluster, self.objects, self.machines) - leaving
        return {host: rack for host, rack in self.racks.items() if host not in unsure}

    @property
    def _why_no_autorecovery(self) -> str | None:
        if not self.cluster.spec.auto_recovery.enabled:
            return "spec.autoRecovery.enabled is false"
        if not self.known_metadata.replication_enabled:
            return "autorecovery is disabled in BookKeeper's metadata (enable it with the shell's autorecovery -enable)"
        return "no auditor is elected" if self.known_metadata.auditor is None else None

    @property
    def _cookies(self) -> frozenset[str]:
        return self.metadata.cookies if isinstance(self.metadata, LedgersMetadata) else frozenset()
