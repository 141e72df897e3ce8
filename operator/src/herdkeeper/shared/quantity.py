"""Kubernetes quantities: as resources state them, with a binary unit, and as the API server writes them."""

from __future__ import annotations

import re
from decimal import Decimal

MIB = 1024 * 1024

_FACTOR: dict[str | None, Decimal] = {
    None: Decimal(1),
    "m": Decimal("0.001"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{unit: Decimal(1024) ** power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(m|[kMGTPE]|[KMGTPE]i)?")
_BYTES = re.compile(r"[0-9]+(Ki|Mi|Gi|Ti)")
_MOST = Decimal(2**63 - 1)
"""The API server stores this for every larger quantity."""


def parsed(quantity: object) -> Decimal | None:
    """Returns the number that a quantity stands for (bytes, cores), or None if it is invalid."""
    found = _QUANTITY.fullmatch(str(quantity))
    return min(_MOST, Decimal(found[1]) * _FACTOR[found[2]]) if found is not None else None


def bytes_of(quantity: str) -> int:
    """Returns the bytes of a quantity with a binary unit, e.g. `20Gi`. Raises ValueError."""
    number = parsed(quantity) if _BYTES.fullmatch(quantity) else None
    if number is None:
        raise ValueError(f"quantity is {quantity!r}: it must be a whole number with one of Ki, Mi, Gi and Ti, e.g. 20Gi")
    return int(number)
