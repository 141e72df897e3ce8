"""Finds the objects that differ from their intent. Unchanged objects are not written.

An object carries the hash of the manifest that was last applied (herdkeeper.io/intent). It is applied again if the hash differs (the intent
changed), or if a live field differs from the intent (somebody changed it).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

from herdkeeper.planning.actions import Apply
from herdkeeper.shared import names, quantity
from herdkeeper.shared.objects import Json, Objects, annotation
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.volumes import Claim

_CONTAINERS = ("containers", "initContainers")
_IN_PODS = ("imagePullSecrets", "topologySpreadConstraints", "volumes", *_CONTAINERS)
_MERGED = frozenset(
    (
        *("metadata.ownerReferences", "spec.ports"),
        *(f"spec.template.spec.{each}" for each in _IN_PODS),
        *(f"spec.template.spec.{each}.{part}" for each in _CONTAINERS for part in ("env", "ports", "volumeMounts")),
    )
)
"""Lists of which an apply replaces its own elements, and no others: by the markers `+listType=map` of Kubernetes' types. Others of these
names are not: an apply replaces the ports of a NetworkPolicy's rule as a whole.
"""


def with_intent(manifest: Json) -> Json:
    """Returns a copy of the manifest that carries its own hash."""
    text = json.dumps(manifest, sort_keys=True)
    metadata = manifest["metadata"]
    marked = {**(metadata.get("annotations") or {}), names.INTENT_ANNOTATION: hashlib.sha256(text.encode()).hexdigest()[:16]}
    return {**manifest, "metadata": {**metadata, "annotations": marked}}


def difference(intended: Any, live: Any, path: str = "") -> str | None:
    """Returns the path of the first intended field that the live object lacks, or None.

    Extra live fields (defaults, status) don't matter. Nor do elements that others added to a list which an apply merges: it leaves them,
    so it would be repeated for ever. Other lists must have equal lengths. Quantities are compared as numbers, since the API server writes
    `1000m` as `1`.
    """
    match intended, live:
        case _ if intended == live or (live is None and intended in ({}, [])):  # most of it is equal, and Python is quicker to see so
            return None
        case dict(), dict():
            for key, value in intended.items():
                if found := difference(value, live.get(key), f"{path}.{key}" if path else key):
                    return found
            return None
        case list(), list() if len(intended) == len(live):
            for index, (one, other) in enumerate(zip(intended, live, strict=True)):
                if found := difference(one, other, f"{path}[{index}]"):
                    return found
            return None
        case _:
            return None if _same_quantity(intended, live) or _has_all(intended, live, path) else path


def _has_all(intended: Any, live: Any, path: str) -> bool:
    """Returns whether a list that an apply merges has all intended elements, beside others."""
    if not (isinstance(intended, list) and isinstance(live, list) and re.sub(r"\[\d+\]", "", path) in _MERGED):
        return False
    return all(any(difference(one, other, path) is None for other in live) for one in intended)


def _same_quantity(one: Any, other: Any) -> bool:
    number = quantity.parsed(one)
    return number is not None and number == quantity.parsed(other)


def adopted(manifest: Json, claim: Claim) -> Apply:
    """Returns the apply of a volume claim's labels and annotations, if its uid still matches. Its spec stays: it can't change."""
    bare = {name: value for name, value in manifest.items() if name != "spec"}
    return Apply({**bare, "metadata": {**manifest["metadata"], "uid": claim.uid}}, new=False, reason=Reason.UPDATING)


def needed_apply(manifest: Json, objects: Objects) -> Apply | None:
    marked = with_intent(manifest)
    live = objects.get(manifest["kind"], manifest["metadata"]["name"])
    if live is None:
        return Apply(marked, new=True, reason=Reason.CREATING)
    if annotation(live, names.INTENT_ANNOTATION) == annotation(marked, names.INTENT_ANNOTATION) and difference(manifest, live) is None:
        return None
    return Apply(marked, new=False, reason=Reason.UPDATING)


def needed_applies(manifests: Iterable[Json], objects: Objects) -> tuple[Apply, ...]:
    """Returns the applies that the objects need to match their intents, in order."""
    return tuple(apply for manifest in manifests if (apply := needed_apply(manifest, objects)) is not None)
