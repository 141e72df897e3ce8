"""Which objects differ from what was intended. What does not differ gets no write.

An object carries the hash of the manifest that was last applied (herdkeeper.io/intent). It is applied again when that hash is another one
(the intent changed) or when a field of the intent has another value in the live object (somebody changed it).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

from herdkeeper.planning.actions import Apply
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json, Objects, annotation
from herdkeeper.shared.reason import Reason

_QUANTITY = re.compile(r"([0-9]+)(m|[kMGTPE]|[KMGTPE]i)?")
_FACTOR: dict[str | None, int] = {
    None: 1000,
    "m": 1,
    **{unit: 1000 * 1000**power for power, unit in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{unit: 1000 * 1024**power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}
"""Thousandths in a unit of Kubernetes' quantities, which the API server also writes with larger units than a spec may have."""
_MOST = 1000 * (2**63 - 1)
"""The API server stores this instead of a larger quantity."""


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
        case ((dict() | list()), None) if not intended:
            return None
        case _:
            return None if intended == live or _same_quantity(intended, live) else path


def _same_quantity(one: Any, other: Any) -> bool:
    found = [_QUANTITY.fullmatch(str(value)) for value in (one, other)]
    if found[0] is None or found[1] is None:
        return False
    thousandths = [min(_MOST, int(match[1]) * _FACTOR[match[2]]) for match in found if match is not None]
    return thousandths[0] == thousandths[1]


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
