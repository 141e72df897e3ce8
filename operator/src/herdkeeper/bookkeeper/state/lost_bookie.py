"""Bookies that lost a disk: how they are recognized, their ids, and what is left of their claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from herdkeeper.api import BookKeeperCluster
from herdkeeper.bookkeeper.state.bookies import LedgersMetadata
from herdkeeper.bookkeeper.state.claims import bookie_ids, claims_of
from herdkeeper.bookkeeper.state.refusal import EMPTIED, refusal
from herdkeeper.shared.objects import Objects


@dataclass(frozen=True)
class LostBookie:
    """A bookie that can't come back under its id.

    `ids`: every id of this number that metadata, claims or its StatefulSet still name; `registered`: those with a live session. `kept`: its
    claims that nobody deleted. `going`: claims that are being deleted. `why`: what is lost. `for_good`: a claim is deleted, or about to be;
    otherwise its disks exist but were found empty.
    """

    number: int
    ids: tuple[str, ...]
    kept: tuple[str, ...]
    going: tuple[str, ...]
    why: str
    registered: tuple[str, ...] = ()
    for_good: bool = True


def lost_bookie(cluster: BookKeeperCluster, number: int, objects: Objects, metadata: LedgersMetadata) -> LostBookie | None:
    """Returns bookie `number` as lost, or None. One lost directory of several is enough: its ledgers are nowhere else."""
    named = cluster.names
    claims = claims_of(cluster, number, objects)
    gone = [name for name, claim in claims.items() if claim is None]
    going = tuple(name for name, claim in claims.items() if claim is not None and claim.going)
    served = objects.get("StatefulSet", named.stateful_set(number)) is not None or any(
        named.number_of(cookie) == number for cookie in metadata.cookies
    )
    pod = objects.get("Pod", named.pod(number))
    emptied = refusal(pod, EMPTIED)
    if not served or not (gone or emptied or (going and not objects.pod_ready(named.pod(number)))):
        return None
    kept = tuple(name for name, claim in claims.items() if claim is not None and name not in going)
    what = _missing(gone, "gone") if gone else _missing(going, "being deleted") if going else emptied
    ids = bookie_ids(named, objects, metadata.cookies, number)
    registered = tuple(bookie_id for bookie_id in ids if bookie_id in metadata.registered)
    return LostBookie(number, ids, kept, going, str(what), registered, bool(gone or going))


def _missing(claims: Sequence[str], how: str) -> str:
    """That claims are not there, or soon will not be."""
    return f"its claim {claims[0]} is {how}" if len(claims) == 1 else f"its claims {' and '.join(claims)} are {how}"
