"""What a volume claim asks for and what it got, in bytes."""

from __future__ import annotations

import re
from typing import Any

_QUANTITY = re.compile(r"([0-9]+)(\.[0-9]+)?(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?")
_FACTOR = {
    None: 1,
    "k": 1000,
    "M": 1000**2,
    "G": 1000**3,
    "T": 1000**4,
    "P": 1000**5,
    "Ki": 1024,
    "Mi": 1024**2,
    "Gi": 1024**3,
    "Ti": 1024**4,
    "Pi": 1024**5,
}


def requested_bytes(claim: dict[str, Any]) -> int | None:
    """Bytes that a claim asks for; None when that can't be read."""
    return _bytes(claim.get("spec", {}).get("resources", {}).get("requests", {}).get("storage"))


def capacity_bytes(claim: dict[str, Any]) -> int | None:
    """Bytes that its volume has; None while it has none, or when that can't be read."""
    return _bytes(((claim.get("status") or {}).get("capacity") or {}).get("storage"))


def _bytes(quantity: Any) -> int | None:
    found = _QUANTITY.fullmatch(str(quantity))
    if found is None:
        return None
    return int(float(f"{found[1]}{found[2] or ''}") * _FACTOR[found[3]]) if found[2] else int(found[1]) * _FACTOR[found[3]]
