"""Which objects differ from what was intended. What does not differ gets no write.

An object carries the hash of the manifest that was last applied (herdkeeper.io/intent). It is applied again when that hash is another one
(the intent changed) or when a field of the intent has another value in the live object (somebody changed it).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from herdkeeper.planning.actions import Apply
from herdkeeper.shared import names, quantity
from herdkeeper.shared.objects import Json, Objects, annotation
from herdkeeper.shared.reason import Reason


def with_intent(manifest: Json) -> Json:
    """A copy that carries the hash of itself."""
    text = json.dumps(manifest, sort_keys=True)
    metadata = manifest["metadata"]
    marked = {**(metadata.get("annotations") or {}), names.INTENT_ANNOTATION: hashlib.sha256(text.encode()).hexdigest()[:16]}
    return {**manifest, "metadata": {**metadata, "annotations": marked}}


def difference(intended: Any, live: Any, path: str = "") -> str | None:
    """Path of the first field of the intent that the live object does not have, None when it has them all.

    Fields that only the live object has (defaults, status) don't matter; lists must be equally long. Quantities are compared as numbers,
    since the API server writes `1000m` as `1`.
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
            return None if _same_quantity(intended, live) else path


def _same_quantity(one: Any, other: Any) -> bool:
    number = quantity.parsed(one)
    return number is not None and number == quantity.parsed(other)


def unsettled(manifest: Json, objects: Objects) -> Apply | None:
    """What must be applied so that the object is as intended; None when it is."""
    marked = with_intent(manifest)
    live = objects.get(manifest["kind"], manifest["metadata"]["name"])
    if live is None:
        return Apply(marked, new=True, reason=Reason.CREATING)
    if annotation(live, names.INTENT_ANNOTATION) == annotation(marked, names.INTENT_ANNOTATION) and difference(manifest, live) is None:
        return None
    return Apply(marked, new=False, reason=Reason.UPDATING)


def settle(manifests: Iterable[Json], objects: Objects) -> tuple[Apply, ...]:
    """What must be applied so that all objects are as intended, in the order given."""
    return tuple(apply for manifest in manifests if (apply := unsettled(manifest, objects)) is not None)
