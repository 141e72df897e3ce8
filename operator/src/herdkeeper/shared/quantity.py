"""Quantities with a binary unit, as resources have them."""

from __future__ import annotations

MIB = 1024 * 1024


_UNITS = {"Ki": 1024, "Mi": MIB, "Gi": 1024 * MIB, "Ti": 1024 * 1024 * MIB}


def bytes_of(quantity: str) -> int:
    """Bytes of a quantity with a binary unit, e.g. `20Gi`. ValueError when it is none."""
    number, unit = quantity[:-2], quantity[-2:]
    if unit not in _UNITS or not number.isdigit():
        raise ValueError(f"quantity is {quantity!r}: it must be a whole number with one of Ki, Mi, Gi and Ti, e.g. 20Gi")
    return int(number) * _UNITS[unit]
