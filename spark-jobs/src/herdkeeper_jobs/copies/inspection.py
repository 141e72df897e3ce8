"""Checks which of a bookie's entries are what the writer wrote, and extracts their content, column by column. Runs on executors.

A deep audit spends nearly all of its own time here, so good entries get no objects.

Checks of a single copy: digest, ids, and LAC, which is at least -1. A writer sends an entry with its current LAC, so that is below the
entry's id. A later copier puts in the LAC that it knows, on a closed ledger its last entry (LedgerFragmentReplicator of BookKeeper 4.18.0).
So the LAC is only certainly below the id in the last segment of an open ledger, which nobody copies. On a closed ledger it is at most the
last entry.

Checks of neighbours: an entry's length is the previous entry's plus its own payload.

Checks among copies: payload and length. `content` is a number derived from both and from the id, so that two entries never look
alike. Equal copies have equal content, whatever their LAC. Its sums over many entries are comparable without the entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import crc32c
import numpy as np
import numpy.typing as npt

from herdkeeper.codecs.bookkeeper.entry import HEADER_BYTES, DigestMismatchError, EntryDigest

Numbers = npt.NDArray[np.int64]
Marks = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]
_NUMBERS = [("ledger_id", ">i8"), ("entry_id", ">i8"), ("lac", ">i8"), ("length", ">i8")]
_DIGESTS = {0: "V0", 4: ">u4", 8: ">u8", 20: "V20"}
"""By size in bytes."""
_FIELDS = {size: np.dtype([*_NUMBERS, ("digest", kind)]) for size, kind in _DIGESTS.items()}
_NOTHING = bytes(HEADER_BYTES + max(_DIGESTS))
_LENGTHS_WEIGHT = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that the product keeps every difference of lengths."""


@dataclass(frozen=True, slots=True)
class Inspected:
    """One element per entry in each array. The other fields of an unsound entry are meaningless."""

    ids: Numbers
    sound: Flags
    """Whether its digest is right and it is the requested entry."""
    lac: Numbers
    sizes: Numbers
    """Bytes with header and digest."""
    length_before: Numbers
    """The ledger's payload bytes before the entry, as the entry says."""
    length_after: Numbers
    """The same with its own payload."""
    content: Marks


def inspect(digest: EntryDigest, ledger_id: int, ids: Numbers, entries: Sequence[bytes]) -> Inspected:
    """Inspects the bytes that a bookie gave as the ledger's entries `ids`; at least one."""
    payload_at = HEADER_BYTES + digest.size
    sizes = np.fromiter(map(len, entries), np.int64, len(entries))
    if sizes.min() < payload_at:
        # Zeros, which no ledger has, replace entries that are too short to parse.
        entries = [data if len(data) >= payload_at else _NOTHING for data in entries]
    wanted, checksums = _checksums(digest, entries)
    fields = np.frombuffer(b"".join(map(itemgetter(slice(payload_at)), entries)), _FIELDS[digest.size])
    right = wanted != 0 if digest.crc is None else fields["digest"] == wanted
    length = fields["length"].astype(np.int64)
    return Inspected(
        ids=ids,
        sound=(fields["entry_id"] == ids) & (fields["ledger_id"] == ledger_id) & (sizes >= payload_at) & right,
        lac=fields["lac"].astype(np.int64),
        sizes=sizes,
        length_before=length - (sizes - payload_at),
        length_after=length,
        content=checksums * (2 * ids + 1).view(np.uint64) + length.view(np.uint64) * _LENGTHS_WEIGHT,
    )


def lac_is_possible(lac: Numbers, ids: Numbers, highest: int | None) -> Flags:
    """Whether each LAC is possible in its entry; `highest` None: it must be below the entry's id."""
    possible: Flags = (lac >= -1) & (lac < ids if highest is None else lac <= highest)
    return possible


def sums_of_content(content: Marks, ids: Numbers, classes: int) -> tuple[int, ...]:
    """The wrapping sum per remainder of the ids by `classes`, as signed 64-bit numbers."""
    if classes == 1:
        return (int(content.sum(dtype=np.uint64).view(np.int64)),)
    own = ids % classes
    return tuple(int(content[own == each].sum(dtype=np.uint64).view(np.int64)) for each in range(classes))


def _checksums(digest: EntryDigest, entries: Sequence[bytes]) -> tuple[Marks, Marks]:
    """Returns each entry's expected digest, or for a non-numeric digest 1 if it is right; and a checksum of the payload.

    It works entry by entry, while a payload is in the processor's cache: column by column takes half as long again.
    """
    payload_at, crc, of_payload = HEADER_BYTES + digest.size, digest.crc, crc32c.crc32c
    wanted: list[int] = []
    checksums: list[int] = []
    for data in entries:
        payload = data[payload_at:]
        checksums.append(of_payload(payload))
        wanted.append(_is_right(digest, data) if crc is None else crc(payload, crc(data[:HEADER_BYTES], 0)))
    return np.array(wanted, np.uint64), np.array(checksums, np.uint64)


def _is_right(digest: EntryDigest, data: bytes) -> bool:
    try:
        digest.verify(data)
    except DigestMismatchError:
        return False
    return True
