"""Where BookKeeper keeps the metadata of a ledger below its root in ZooKeeper.

The znode LAYOUT says which ledger manager wrote the tree: `2\\n<factory class>:<version>`. Ids are decimal, zero-filled and split into
path elements, the last one behind an `L`. Source: LedgerLayout, StringUtils and the ledger managers of BookKeeper 4.18.0.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import assert_never

from herdkeeper.codecs.java_data import MalformedDataError

_MAX_SHORT_ID = 2**31 - 1
_SHORT_SPLIT = (2, 4, 4)
_LONG_SPLIT = (3, 4, 4, 4, 4)


class LedgerLayout(Enum):
    """The ledger managers; the value is the name of the factory class without its package and the ending `LedgerManagerFactory`."""

    FLAT = "Flat"
    LEGACY_HIERARCHICAL = "LegacyHierarchical"
    HIERARCHICAL = "Hierarchical"
    LONG_HIERARCHICAL = "LongHierarchical"


def decode_layout(data: bytes) -> LedgerLayout:
    """Returns the layout in the znode LAYOUT. Raises MalformedDataError for managers with other stores (e.g. etcd)."""
    match = re.fullmatch(r"\d+\n(?:[\w.]*\.)?(\w+)LedgerManagerFactory:\d+\s*", data.decode("utf-8", "replace"))
    known = {layout.value: layout for layout in LedgerLayout}
    if match is None or match.group(1) not in known:
        raise MalformedDataError(f"LAYOUT is {data[:120]!r}, expected a version and one of {sorted(known)} with LedgerManagerFactory")
    return known[match.group(1)]


def ledger_path(layout: LedgerLayout, ledger_id: int) -> str:
    """Path of a ledger's znode below the root, with a leading slash."""
    if ledger_id < 0:
        raise ValueError(f"ledger id {ledger_id}: expected 0 or more")
    match layout:
        case LedgerLayout.FLAT:
            return f"/L{ledger_id:010d}"
        case LedgerLayout.LEGACY_HIERARCHICAL:
            return _split(f"{ledger_id:010d}", _SHORT_SPLIT)
        case LedgerLayout.HIERARCHICAL:
            return _split(f"{ledger_id:010d}", _SHORT_SPLIT) if ledger_id < _MAX_SHORT_ID else _split(f"{ledger_id:019d}", _LONG_SPLIT)
        case LedgerLayout.LONG_HIERARCHICAL:
            return _split(f"{ledger_id:019d}", _LONG_SPLIT)
        case _:
            assert_never(layout)


def inner_levels(layout: LedgerLayout, name: str) -> int | None:
    """Returns how many levels of inner znodes are below the root's child `name`; 0: it is a ledger; None: neither.

    The root also has `available`, `cookies`, `idgen` and others, which don't match digits.
    """
    if layout is LedgerLayout.FLAT:
        return 0 if re.fullmatch(r"L\d{10}", name) else None
    if not name.isdigit():
        return None
    if len(name) == _SHORT_SPLIT[0] and layout is not LedgerLayout.LONG_HIERARCHICAL:
        return len(_SHORT_SPLIT) - 1
    if len(name) == _LONG_SPLIT[0] and layout is not LedgerLayout.LEGACY_HIERARCHICAL:
        return len(_LONG_SPLIT) - 1
    return None


def ledger_id_of(path: str) -> int | None:
    """Returns the id in a path below the root (`/00/0000/L0001`), or None if it is not a ledger's."""
    match = re.fullmatch(r"((?:/[0-9]{1,4}){0,4})/L([0-9]{1,10})", path)
    return None if match is None else int(match.group(1).replace("/", "") + match.group(2))


def _split(digits: str, widths: tuple[int, ...]) -> str:
    parts = []
    start = 0
    for width in widths:
        parts.append(digits[start : start + width])
        start += width
    return "/" + "/".join(parts[:-1]) + "/L" + parts[-1]
