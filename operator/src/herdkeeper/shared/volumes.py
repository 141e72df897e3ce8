"""What a volume claim asks for and what it got, in bytes."""

from __future__ import annotations

from typing import Any

from herdkeeper.shared.quantity import parsed


def requested_bytes(claim: dict[str, Any]) -> int | None:
    """Bytes that a claim asks for; None when that can't be read."""
    return _bytes(claim.get("spec", {}).get("resources", {}).get("requests", {}).get("storage"))


def capacity_bytes(claim: dict[str, Any]) -> int | None:
    """Bytes that its volume has; None while it has none, or when that can't be read."""
    return _bytes(((claim.get("status") or {}).get("capacity") or {}).get("storage"))


def _bytes(quantity: Any) -> int | None:
    number = parsed(quantity)
    return None if number is None else int(number)
