"""Handles a bookie whose cookie is missing in ZooKeeper, or whose volumes its entry point refused.

A cookie keeps a bookie from starting on foreign disks. It is restored only if the volumes themselves identify this bookie, this cluster and
these directories. The entry point reports their content once BookKeeper refuses to start. Nothing is ever deleted to make a bookie start.
"""

from __future__ import annotations

from herdkeeper.api import BookKeeperCluster
from herdkeeper.bookkeeper.build.bookies import BookieIdentity, directories_of
from herdkeeper.bookkeeper.state.bookies import BookKeeperObserved, LedgersMetadata, MetadataStore
from herdkeeper.bookkeeper.state.claims import claim_names
from herdkeeper.bookkeeper.state.numbers import ids_that_served
from herdkeeper.bookkeeper.state.refusal import REFUSED, cookie_on_volumes, refusal
from herdkeeper.codecs.bookkeeper.cookie import Cookie, decode_cookie
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.planning.actions import RestoreCookie, Wait
from herdkeeper.shared.reason import Reason


def restored_cookie(
    cluster: BookKeeperCluster, identity: BookieIdentity, seen: BookKeeperObserved, metadata: LedgersMetadata
) -> RestoreCookie | Wait | None:
    """Returns what to do about a bookie's cookie. None if it has one, or never started."""
    named = cluster.names
    if identity.bookie_id in metadata.writable | metadata.read_only:
        return None
    pod = seen.objects.get("Pod", named.pod(identity.number))
    why, found = refusal(pod, REFUSED), cookie_on_volumes(pod)
    if why is None and identity.bookie_id in metadata.cookies:
        return None
    if why is None and found is None:
        return _unknown(identity) if identity.bookie_id in ids_that_served(named, seen.objects, metadata) else None
    why = why or _why_not(found or b"", cluster, identity, metadata)
    if why is None and isinstance(seen.store, MetadataStore):
        return RestoreCookie(seen.store.address, named.ledgers_root, _cookie(cluster, identity, metadata))
    return Wait(
        Reason.VOLUMES_REFUSED,
        f"bookie {identity.number} does not start: {why}. Nothing is changed. Mount the right volumes under the names of its claims. "
        "Or give these volumes up, and its ledgers are copied from other bookies: `kubectl delete pvc "
        f"{' '.join(claim_names(cluster, identity.number))} -n {cluster.metadata.namespace}`",
    )


def _unknown(identity: BookieIdentity) -> Wait:
    return Wait(
        Reason.RECOVERING,
        f"ZooKeeper has no cookie of {identity.bookie_id}, which served before: it is restored once the bookie has started and reported"
        f" that its volumes belong to this cluster",
    )


def _cookie(cluster: BookKeeperCluster, identity: BookieIdentity, metadata: LedgersMetadata) -> Cookie:
    """Returns the cookie that this bookie had."""
    journal, ledgers = directories_of(cluster)
    return Cookie(identity.bookie_id, journal, ledgers, metadata.instance_id)


def _why_not(found: bytes, cluster: BookKeeperCluster, identity: BookieIdentity, metadata: LedgersMetadata) -> str | None:
    """Returns why the volumes' content does not prove that they belong to this bookie, or None."""
    named = cluster.names
    others = sorted(cookie for cookie in metadata.cookies if named.number_of(cookie) == identity.number)
    if others:
        return f"ZooKeeper has no cookie of {identity.bookie_id}, but one of {others[0]}, from other volumes"
    try:
        on_volumes = decode_cookie(found)
    except MalformedDataError as error:
        return f"ZooKeeper has no cookie of {identity.bookie_id}, and VERSION on its volumes can't be read: {error}"
    expected = _cookie(cluster, identity, metadata)
    if on_volumes.instance_id != expected.instance_id:
        return (
            f"ZooKeeper has no cookie of {identity.bookie_id}, and its volumes belong to the BookKeeper cluster "
            f"{on_volumes.instance_id} (instanceId in VERSION), not to {expected.instance_id}"
        )
    if on_volumes != expected:
        return f"ZooKeeper has no cookie of {identity.bookie_id}, and VERSION on its volumes says {on_volumes}, expected {expected}"
    return None
