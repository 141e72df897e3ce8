"""Decodes the common entries of a batch at once: row changes, transaction boundaries and NOOPs, nearly all of a log.

Each step handles one field of all entries: the headers, then the lengths, which depend on the field before, then the bytes. Other entries
(definitions, damage, an older header) are left to `codecs.herddb.log_entry`, which decodes them or says what is wrong. The format is
described there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from herdkeeper.codecs.herddb.log_entry import LogEntryType
from herdkeeper.codecs.java_data import MalformedDataError, decode_modified_utf8
from herdkeeper_jobs.packed_bytes import Flags, Integers, PackedBytes

_HEADER_BYTES = 20
_WITH_VALUE = (LogEntryType.INSERT, LogEntryType.UPDATE)
_WITH_KEY = (*_WITH_VALUE, LogEntryType.DELETE)
_BARE = (LogEntryType.BEGIN, LogEntryType.COMMIT, LogEntryType.ROLLBACK, LogEntryType.NOOP)


@dataclass(frozen=True, slots=True)
class CommonEntries:
    """The decoded entries of a batch: `rows` says which; each column has one value per decoded entry, in order."""

    rows: Flags
    timestamp: pa.Array
    type: pa.Array
    transaction_id: pa.Array
    table_name: pa.Array
    row_key: pa.Array
    row_value: pa.Array


def decode_common_entries(payloads: pa.Array) -> CommonEntries:
    """Decodes the common entries in an array of binary payloads without nulls."""
    source = PackedBytes.of(payloads)
    header = source.data[np.minimum(source.starts[:, None] + np.arange(_HEADER_BYTES), len(source.data) - 1)]
    kind = _number(header, 8, ">i2")
    good = (source.ends - source.starts >= _HEADER_BYTES) & (_number(header, 18, ">u2") == 0)
    bare = good & np.isin(kind, _BARE) & (source.ends - source.starts == _HEADER_BYTES)
    keyed = good & np.isin(kind, _WITH_KEY)
    table_at, table_bytes = source.starts + _HEADER_BYTES + 2, _short(source, source.starts + _HEADER_BYTES)
    key_at, key_bytes, keyed = source.arrays(table_at + table_bytes, source.ends, keyed)
    value_at, value_bytes, whole = source.arrays(key_at + key_bytes, source.ends, keyed & np.isin(kind, _WITH_VALUE))
    whole |= keyed & (kind == LogEntryType.DELETE)
    end = np.where(kind == LogEntryType.DELETE, key_at + key_bytes, value_at + value_bytes)
    whole &= end == source.ends
    names, named = _names(source, np.where(whole, table_at, 0), np.where(whole, table_bytes, 0))
    rows = (bare | whole) & named
    return CommonEntries(
        rows,
        pa.array(_number(header, 0, ">i8")[rows], pa.int64()),
        pa.array(kind[rows].astype(np.int32), pa.int32()),
        pa.array(_number(header, 10, ">i8")[rows], pa.int64()),
        names.filter(pa.array(rows)),
        source.slices(key_at[rows], np.where(whole, key_bytes, 0)[rows]),
        source.slices(value_at[rows], np.where(whole & np.isin(kind, _WITH_VALUE), value_bytes, 0)[rows]),
    )


def _number(header: npt.NDArray[np.uint8], at: int, form: str) -> Integers:
    width = np.dtype(form).itemsize
    return np.ascontiguousarray(header[:, at : at + width]).view(form)[:, 0].astype(np.int64)


def _short(source: PackedBytes, at: Integers) -> Integers:
    return source.at(at) << 8 | source.at(at + 1)


def _names(source: PackedBytes, starts: Integers, lengths: Integers) -> tuple[pa.Array, Flags]:
    """Decodes table names, of which few differ, and returns which entries have a valid one."""
    encoded = source.slices(starts, lengths).dictionary_encode()
    texts: list[str | None] = []
    for name in encoded.dictionary.to_pylist():
        try:
            texts.append(decode_modified_utf8(name))
        except MalformedDataError:
            texts.append(None)
    decodable = np.array([text is not None for text in texts], np.bool_)
    indices = encoded.indices.to_numpy(zero_copy_only=False)
    return pa.array(texts, pa.string()).take(encoded.indices), decodable[indices]
