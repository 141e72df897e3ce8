"""Observes a BookKeeperCluster. Metadata paths and formats: BookKeeper 4.18's ZKRegistrationManager and underreplication layout."""

from __future__ import annotations

import dataclasses
import itertools
import re
import secrets
from collections.abc import Iterator
from functools import partial

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, ZooKeeperCluster
from herdkeeper.bookkeeper.observe.ledgers import LedgerScans, ScanRequest
from herdkeeper.bookkeeper.state.bookies import LedgerScan, LedgersMetadata, Marks, Metadata, MetadataAbsent, MetadataStore, RecoveryDelay
from herdkeeper.bookkeeper.state.claims import known_claims
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.certificates.holders import NOTHING_DUE, DueSecrets
from herdkeeper.certificates.roles import bookkeeper_holders
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.dependents import observe_dependents
from herdkeeper.clients.identities import observe_identities
from herdkeeper.clients.kubernetes import JOBS, SECRETS, SHARED, WORKLOADS
from herdkeeper.clients.nodes import nodes_of
from herdkeeper.clients.stack import databases_disruption, databases_on, ensemble_disruption
from herdkeeper.clients.zookeeper import EnsembleError, Znode, Znodes
from herdkeeper.clients.zookeeper_member import Wake
from herdkeeper.codecs.bookkeeper.underreplication import (
    MARK,
    MARK_DEPTH,
    decode_recovery_delay,
    disabled_path,
    mark_time_ms,
    marks_path,
    recovery_delay_path,
)
from herdkeeper.shared import names
from herdkeeper.shared.conditions import is_settled_resource
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.objects import Objects, label
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.quantity import bytes_of
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import text_of_now
from herdkeeper.shared.unknown import Unknown

READ_ONLY_CHILD = "readonly"
MOST_MARKS = 1000
"""Maximum number of marks to read: enough to show that many are left, and whether they decrease."""
MOST_BOOKIES = 2000
"""Identities in the metadata. A cluster has at most 999 bookies, and those that leave; a look at names without end would not end."""
_AUDITOR = re.compile(rb'bookieId:\s*"([^"]+)"')


def observe_bookkeeper(cluster: BookKeeperCluster, reader: ClusterReader) -> BookieFleet:
    """Returns the cluster's objects, its ensemble, and BookKeeper's metadata there."""
    key = cluster.key
    store = _store(cluster, reader)
    objects = reader.kubernetes.owned(cluster.KIND, key, (*WORKLOADS, *SHARED, *SECRETS, JOBS[0]))
    metadata = _metadata(reader, store, cluster)
    secret = reader.kubernetes.secret(ObjectKey(key.namespace, cluster.names.token_secret)) or {}
    if cluster.metadata.deletion_timestamp is None and isinstance(metadata, LedgersMetadata):
        claims = known_claims(cluster, objects, metadata.cookies)
        objects = reader.kubernetes.with_claims(objects, key.namespace, claims, names.BOOKIE_ID_ANNOTATION)
    pods = (pod for pod in objects.of_kind("Pod") if label(pod, names.BOOKIE_LABEL) is not None)
    fleet = BookieFleet(
        cluster=cluster,
        objects=objects,
        store=store,
        metadata=metadata,
        fresh_tokens=tuple(secrets.token_hex(5) for _ in range(cluster.spec.bookies)),
        dependents=observe_dependents(cluster, HerdDBCluster, reader),
        disruption=ensemble_disruption(cluster, reader) or databases_disruption(key, reader),
        machines=nodes_of(pods, reader),
        expandable=_expandable(cluster, objects, reader),
        now=text_of_now(),
        identities=_identities(cluster, store, reader),
        token=secret.get(names.TOKEN_KEY, "").strip() or secrets.token_urlsafe(32),
    )
    scan = _scan(fleet, reader)
    return fleet if scan is None else dataclasses.replace(fleet, scan=scan)


def _identities(cluster: BookKeeperCluster, store: MetadataStore | Problem, reader: ClusterReader) -> DueSecrets:
    if isinstance(store, Problem):
        return NOTHING_DUE
    return observe_identities(cluster, bookkeeper_holders(cluster), store.address, reader.kubernetes)


def observe_ledgers(fleet: BookieFleet, reader: ClusterReader) -> BookieFleet:
    """Returns the observation with the metadata of all ledgers added."""
    return dataclasses.replace(fleet, scan=_scan(fleet, reader, needed=True))


def _expandable(cluster: BookKeeperCluster, objects: Objects, reader: ClusterReader) -> dict[str, bool | Unknown]:
    """Returns whether the StorageClasses of growing claims allow expansion."""
    named = cluster.names
    classes: set[str] = set()
    for name, claim in objects.claims.items():
        number = named.number_of_claim(name)
        if number is None:
            continue
        wanted = bytes_of((cluster.spec.journal if name == named.journal_claim(number) else cluster.spec.ledgers).size)
        if claim.storage_class is not None and (claim.requested_bytes or wanted) < wanted:
            classes.add(claim.storage_class)
    return {name: reader.kubernetes.expandable(name) for name in sorted(classes)}


def _scan(fleet: BookieFleet, reader: ClusterReader, *, needed: bool = False) -> LedgerScan | Unknown | None:
    """Returns what the draining and lost bookies hold, and which bookies ledgers name. None if neither needed nor requested.

    It begins after Kubernetes and the registrations were read. One that is `needed`, since an action depends on it, began after they were
    as they are now. Any other one is good enough to wait by only.
    """
    store, numbers, key = fleet.store, fleet.numbers, fleet.cluster.key
    if isinstance(store, Problem) or not isinstance(fleet.metadata, LedgersMetadata):
        return None
    if not (numbers.leaving or numbers.lost or needed) or fleet.cluster.metadata.deletion_timestamp is not None:
        return None
    ids = {bookie_id for number in (*numbers.leaving, *(lost.number for lost in numbers.lost)) for bookie_id in fleet.ids[number]}
    lost = frozenset(bookie_id for each in numbers.lost for bookie_id in each.ids) - fleet.metadata.registered
    asked = ScanRequest(tuple(sorted(ids)), databases_on(key, reader), fleet.placement_rule, fleet.seen_before_a_scan, lost)
    root = fleet.named.ledgers_root
    scans = LedgerScans(reader.scans, f"{store.address}{root}", root, partial(reader.znodes, store.address, key.namespace), reader.wake)
    return scans.current(asked) if needed else scans.recent(asked, needed=bool(numbers.leaving))


def _store(cluster: BookKeeperCluster, reader: ClusterReader) -> MetadataStore | Problem:
    if cluster.spec.zoo_keeper_address is not None:
        return MetadataStore(cluster.spec.zoo_keeper_address, serving=True)
    if cluster.spec.zoo_keeper_ref is None:
        raise ValueError("validation lets no resource pass without zooKeeperRef and zooKeeperAddress")
    key = ObjectKey(cluster.metadata.namespace, cluster.spec.zoo_keeper_ref.name)
    ensemble = reader.kubernetes.readable(ZooKeeperCluster, key)
    if ensemble is None:
        return Problem(
            Reason.WAITING_FOR_ZOOKEEPER,
            f"the ZooKeeperCluster {key.name} does not exist in the namespace {key.namespace}, or its spec is invalid",
        )
    serving = is_settled_resource(ensemble)
    if not serving and (ensemble.status is None or not ensemble.status.founded):
        return Problem(Reason.WAITING_FOR_ZOOKEEPER, f"the ZooKeeperCluster {key.name} is not Ready yet")
    return MetadataStore(ensemble.published_address or ensemble.address, serving, ensemble.accepts_plaintext)


def _metadata(reader: ClusterReader, store: MetadataStore | Problem, cluster: BookKeeperCluster) -> Metadata:
    if isinstance(store, Problem):
        return Unknown(store.why)
    try:
        znodes = reader.znodes(store.address, cluster.metadata.namespace)
        return read_ledgers_metadata(znodes, cluster.names.ledgers_root, reader.wake)
    except EnsembleError as error:
        return Unknown(str(error))


def read_ledgers_metadata(znodes: Znodes, root: str, wake: Wake | None = None) -> Metadata:
    """Returns BookKeeper's metadata below its root. `wake` is called at a change that a settled cluster needs. Raises EnsembleError."""
    # before the registrations themselves: a change meanwhile is then one since
    registrations = [znodes.read_changed(f"{root}/{path}") for path in ("available", f"available/{READ_ONLY_CHILD}")]
    instance = znodes.read(f"{root}/INSTANCEID")
    if instance is None:
        if znodes.read(root) is None:
            return MetadataAbsent()
        return Unknown(f"{root} in ZooKeeper has no INSTANCEID: it is not a BookKeeper cluster's root")
    election = znodes.read(f"{root}/underreplication/auditorelection")
    votes = znodes.children(f"{root}/underreplication/auditorelection") or ()
    znodes.children(marks_path(root), wake)
    marks = _read_marks(znodes, root)
    auditor = _AUDITOR.search(election[0]) if election is not None and votes else None
    writable = frozenset(znodes.children(f"{root}/available", wake) or ()) - {READ_ONLY_CHILD}
    read_only = frozenset(znodes.children(f"{root}/available/{READ_ONLY_CHILD}", wake) or ())
    cookies = frozenset(znodes.children(f"{root}/cookies", wake) or ())
    if (named := len(writable | read_only | cookies)) > MOST_BOOKIES:
        return Unknown(f"{root} in ZooKeeper names {named} bookies, and no cluster has more than {MOST_BOOKIES}: see who wrote them")
    return LedgersMetadata(
        instance_id=instance[0].decode(errors="replace"),
        writable=writable,
        read_only=read_only,
        cookies=cookies,
        auditor=auditor[1].decode(errors="replace") if auditor else None,
        under_replicated=marks.ledgers > 0,
        marks=marks,
        replication_enabled=znodes.read(disabled_path(root)) is None,
        recovery_delay=_read_recovery_delay(znodes, root),
        registrations=(_children_transaction(registrations[0]), _children_transaction(registrations[1])),
    )


def _children_transaction(znode: Znode | None) -> int:
    return 0 if znode is None else znode.children_transaction


def _read_marks(znodes: Znodes, root: str) -> Marks:
    """Returns the marks of under-replicated ledgers, at most a thousand. Empty folders of old marks may exist."""
    paths = tuple(itertools.islice(_mark_paths(znodes, marks_path(root), MARK_DEPTH), MOST_MARKS))
    found = [znodes.read(path) for path in paths]  # one that is gone was cleared during the read
    times = [time for data in found if data is not None and (time := mark_time_ms(data[0])) is not None]
    return Marks(sum(1 for data in found if data is not None), min(times, default=None))


def _mark_paths(znodes: Znodes, path: str, depth: int) -> Iterator[str]:
    for name in znodes.children(path) or ():
        if MARK.fullmatch(name):
            yield f"{path}/{name}"
        elif depth > 0:
            yield from _mark_paths(znodes, f"{path}/{name}", depth - 1)


def _read_recovery_delay(znodes: Znodes, root: str) -> RecoveryDelay | None:
    found = znodes.read_changed(recovery_delay_path(root))
    return None if found is None else RecoveryDelay(decode_recovery_delay(found.data), found.version, found.changed_at)
