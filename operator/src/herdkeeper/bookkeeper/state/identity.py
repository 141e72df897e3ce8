"""The ids under which a bookie is known."""

from __future__ import annotations

from herdkeeper.shared import names
from herdkeeper.shared.names import BookKeeperNames
from herdkeeper.shared.objects import Objects, annotation


def bookie_ids(named: BookKeeperNames, objects: Objects, cookies: frozenset[str], number: int) -> frozenset[str]:
    """Returns every identity of a number: on its claims, in its StatefulSet, among the cookies. More than one is an error."""
    claims = (claim for claim in objects.of_kind("PersistentVolumeClaim") if named.number_of(claim["metadata"]["name"]) == number)
    marked = {annotation(claim, names.BOOKIE_ID_ANNOTATION) for claim in claims}
    item = objects.get("StatefulSet", named.stateful_set(number))
    containers = item["spec"]["template"]["spec"]["containers"] if item is not None else []
    given = {entry.get("value") for container in containers for entry in container.get("env") or [] if entry["name"] == "BOOKIE_ID"}
    return frozenset(
        str(found) for found in {*marked, *given, *(cookie for cookie in cookies if named.number_of(cookie) == number)} if found
    )
