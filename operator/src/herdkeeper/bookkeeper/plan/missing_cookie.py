"""Handles a bookie whose cookie is missing in ZooKeeper, or whose volumes its entry point refused.

A cookie keeps a bookie from starting on foreign disks. It is restored only if the volumes themselves identify this bookie, this cluster and
these directories. The entry point reports their content once BookKeeper refuses to start. Nothing is ever deleted to make a bookie start.
"""

from __future__ import annotations

from herdkeeper.bookkeeper.build.bookies import BookieIdentity, directories_of
from herdkeeper.bookkeeper.state.claims import claim_names
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.bookkeeper.state.refusal import REFUSED, cookie_on_volumes, refusal
from herdkeeper.codecs.bookkeeper.cookie import Cookie, decode_cookie
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.planning.actions import RestoreCookie, Wait
from herdkeeper.shared.reason import Reason


def restored_cookie(fleet: BookieFleet, identity: BookieIdentity) -> RestoreCookie | Wait | None:
    """Returns what to do about a bookie's cookie. None if it has one, or never started."""
    if identity.bookie_id in fleet.known_metadata.registered:
        return None
    pod = fleet.objects.get("Pod", fleet.named.pod(identity.number))
    why, found = refusal(pod, REFUSED), cookie_on_volumes(pod)
    if why is None and identity.bookie_id in fleet.known_metadata.cookies:
        return None
    if why is None and found is None:
        return _unknown(identity) if identity.bookie_id in fleet.served_ids else None
    why = why or _why_not(found or b"", fleet, identity)
    if why is None:
        return RestoreCookie(fleet.zookeeper_address, fleet.named.ledgers_root, _cookie(fleet, identity))
    return Wait(
        Reason.VOLUMES_REFUSED,
        f"bookie {identity.number} does not start: {why}. Nothing is changed. Mount the right volumes under the names of its claims. "
        f"{_way_out(fleet, identity)}",
    )


def _way_out(fleet: BookieFleet, identity: BookieIdentity) -> str:
    """Returns what else to do than to mount the right volumes. Bookies that are away together may hold the only copies of a ledger."""
    away = sorted(each for each in fleet.served_ids - fleet.known_metadata.registered if fleet.named.number_of(each) != identity.number)
    if away:
        return f"Don't give these volumes up: other bookies are away, too ({', '.join(away)}), so they may hold the only copies of ledgers"
    return (
        "Or give these volumes up, and its ledgers are copied from other bookies: `kubectl delete pvc "
        f"{' '.join(claim_names(fleet.cluster, identity.number))} -n {fleet.cluster.metadata.namespace}`"
    )


def _unknown(identity: BookieIdentity) -> Wait:
    return Wait(
        Reason.RECOVERING,
        f"ZooKeeper has no cookie of {identity.bookie_id}, which served before: it is restored once the bookie has started and reported"
        f" that its volumes belong to this cluster",
    )


def _cookie(fleet: BookieFleet, identity: BookieIdentity) -> Cookie:
    journal, ledgers = directories_of(fleet.cluster)
    return Cookie(identity.bookie_id, journal, ledgers, fleet.known_metadata.instance_id)


def _why_not(found: bytes, fleet: BookieFleet, identity: BookieIdentity) -> str | None:
    """Returns why the volumes' content does not prove that they belong to this bookie, or None."""
    others = sorted(cookie for cookie in fleet.known_metadata.cookies if fleet.named.number_of(cookie) == identity.number)
    if others:
        return f"ZooKeeper has no cookie of {identity.bookie_id}, but one of {others[0]}, from other volumes"
    try:
        on_volumes = decode_cookie(found)
    except MalformedDataError as error:
        return f"ZooKeeper has no cookie of {identity.bookie_id}, and VERSION on its volumes can't be read: {error}"
    expected = _cookie(fleet, identity)
    if on_volumes.instance_id != expected.instance_id:
        return (
            f"ZooKeeper has no cookie of {identity.bookie_id}, and its volumes belong to the BookKeeper cluster "
            f"{on_volumes.instance_id} (instanceId in VERSION), not to {expected.instance_id}"
        )
    if on_volumes != expected:
        return f"ZooKeeper has no cookie of {identity.bookie_id}, and VERSION on its volumes is {on_volumes} instead of {expected}"
    return None
