"""Requested and actual size of a volume claim, in bytes."""

from __future__ import annotations

from typing import Any

from herdkeeper.shared.quantity import parsed


def requested_bytes(claim: dict[str, Any]) -> int | None:
    """Returns the bytes that a claim requests, or None if unreadable."""
    return _bytes(claim.get("spec", {}).get("resources", {}).get("requests", {}).get("storage"))


def capacity_bytes(claim: dict[str, Any]) -> int | None:
    """Returns the bytes of a claim's volume, or None if it has none or is unreadable."""
    return _bytes(((claim.get("status") or {}).get("capacity") or {}).get("storage"))


def _bytes(quantity: Any) -> int | None:
    number = parsed(quantity)
    return None if number is None else int(number)
