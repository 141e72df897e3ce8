"""Pins of a tablespace's log: `<herd root>/logPins/<tablespace uuid>/<name>`, for the node program.

JSON: ledgerId, entryId; the log is kept from that ledger on. `replica-<node>` is the position of that node's local checkpoint, and counts
while the node is a replica. `stream-<name>` belongs to a change stream (herdkeeper_jobs.datasource). It also has maxAgeSeconds, and counts
for so long after its last write, by ZooKeeper's clock. Other pins count while they exist. `checkpoint`, `archive` and `second-disk` are the
operator's. A pin that the node program can't read keeps the whole log. Source: io.herdkeeper.node.release.LogPins (images/herddb).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from herdkeeper.codecs.java_data import MalformedDataError

CHECKPOINT = "checkpoint"
"""Log that the next Checkpoint needs."""
ARCHIVE = "archive"
"""Log that is not archived yet."""
SECOND_DISK = "second-disk"
"""Log of rows that only one disk holds, besides the bookies."""
BEGIN = (-1, -1)
"""Before the log's first entry: the whole log."""


LONGEST_AGE_SECONDS = 3650 * 24 * 3600
"""Ten years: a pin with a longer age was not written by a stream."""

_STREAM = "stream-"
_STREAM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class StreamPin:
    """A stream needs the log from an LSN (ledger id, entry id) on, unless the pin is older than this."""

    lsn: tuple[int, int]
    max_age_seconds: int


def log_pins_path(herd_root: str, tablespace_uuid: str) -> str:
    """Returns the path whose children are a tablespace's pins."""
    return f"{herd_root}/logPins/{tablespace_uuid}"


def log_pin_path(herd_root: str, tablespace_uuid: str, name: str) -> str:
    return f"{log_pins_path(herd_root, tablespace_uuid)}/{name}"


def replica_pin(node: str) -> str:
    """Returns the name of a node's own pin."""
    return f"replica-{node}"


def encode_log_pin(lsn: tuple[int, int]) -> bytes:
    """Returns the bytes that keep the log from an LSN (ledger id, entry id) on."""
    return json.dumps({"ledgerId": lsn[0], "entryId": lsn[1]}, separators=(",", ":")).encode()


def decode_log_pin(data: bytes) -> tuple[int, int]:
    """Returns the LSN (ledger id, entry id) of a pin. Raises MalformedDataError unless it is a JSON object with two whole numbers."""
    ledger_id, entry_id = _whole_numbers(data, ("ledgerId", "entryId"))
    return ledger_id, entry_id


def stream_pin(stream: str) -> str:
    """Returns the name of a stream's pin. Raises ValueError if a znode of that name would be ambiguous or invalid."""
    if _STREAM_NAME.fullmatch(stream) is None:
        raise ValueError(f"{stream!r} can't name a pin: give letters, digits, dots, underscores and hyphens, 63 at most, no hyphen first")
    return f"{_STREAM}{stream}"


def stream_of(pin: str) -> str | None:
    return pin.removeprefix(_STREAM) if pin.startswith(_STREAM) else None


def encode_stream_pin(pin: StreamPin) -> bytes:
    """Returns the bytes that keep the log for a stream."""
    document = {"ledgerId": pin.lsn[0], "entryId": pin.lsn[1], "maxAgeSeconds": pin.max_age_seconds}
    return json.dumps(document, separators=(",", ":")).encode()


def decode_stream_pin(data: bytes) -> StreamPin:
    """Returns what a stream needs. Raises MalformedDataError unless it is a JSON object with three whole numbers and an age above 0 and up
    to ten years. The node program then keeps the whole log.
    """
    ledger_id, entry_id, age = _whole_numbers(data, ("ledgerId", "entryId", "maxAgeSeconds"))
    if not 0 < age <= LONGEST_AGE_SECONDS:
        raise MalformedDataError(f"log pin {data[:200]!r}: expected a maxAgeSeconds above 0 and of {LONGEST_AGE_SECONDS} at most")
    return StreamPin((ledger_id, entry_id), age)


def _whole_numbers(data: bytes, names: tuple[str, ...]) -> tuple[int, ...]:
    try:
        document = json.loads(data)
        numbers = tuple(document[name] for name in names)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise MalformedDataError(f"log pin {data[:200]!r}: expected JSON with {' and '.join(names)}") from error
    if not all(type(number) is int for number in numbers):
        raise MalformedDataError(f"log pin {data[:200]!r}: expected whole numbers as {' and '.join(names)}")
    return numbers
