"""What needs a tablespace's log, and from where on: `<herd root>/logPins/<tablespace uuid>/<name>`, where our node program runs.

JSON: ledgerId, entryId; the log is kept from that ledger on. `replica-<node>` is up to where that node's own disk has the tables, and
counts while the node is a replica. `stream-<name>` is of a stream of changes (herdkeeper_jobs.datasource), has maxAgeSeconds besides, and
counts for so long after it was written last, by ZooKeeper's clock. A pin of another name counts for as long as it is there. `checkpoint`,
`archive` and `second-disk` are the operator's.
Source: io.herdkeeper.node.release.LogPins (images/herddb). What the node program can't read keeps the whole log.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from herdkeeper.codecs.java_data import MalformedDataError

CHECKPOINT = "checkpoint"
"""The log that the next Checkpoint needs."""
ARCHIVE = "archive"
"""The log that is not archived yet."""
SECOND_DISK = "second-disk"
"""The log of what only one disk holds outside of the bookies."""
BEGIN = (-1, -1)
"""Before the log's first entry: all of it is needed."""


LONGEST_AGE_SECONDS = 3650 * 24 * 3600
"""Ten years: a stream's pin of which more is told is none that was written by one."""

_STREAM = "stream-"
_STREAM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class StreamPin:
    """What a stream still needs: the log from an LSN (ledger id, entry id) on, for as long as the pin is not older than this."""

    lsn: tuple[int, int]
    max_age_seconds: int


def log_pins_path(herd_root: str, tablespace_uuid: str) -> str:
    """Path whose children are the pins of a tablespace."""
    return f"{herd_root}/logPins/{tablespace_uuid}"


def log_pin_path(herd_root: str, tablespace_uuid: str, name: str) -> str:
    """Path of one pin."""
    return f"{log_pins_path(herd_root, tablespace_uuid)}/{name}"


def replica_pin(node: str) -> str:
    """The name of a node's own pin."""
    return f"replica-{node}"


def encode_log_pin(lsn: tuple[int, int]) -> bytes:
    """The bytes that keep the log from an LSN (ledger id, entry id) on."""
    return json.dumps({"ledgerId": lsn[0], "entryId": lsn[1]}, separators=(",", ":")).encode()


def decode_log_pin(data: bytes) -> tuple[int, int]:
    """The LSN (ledger id, entry id) in a pin.

    Raises:
        MalformedDataError: no JSON object with two whole numbers.
    """
    ledger_id, entry_id = _whole_numbers(data, ("ledgerId", "entryId"))
    return ledger_id, entry_id


def stream_pin(stream: str) -> str:
    """The name of a stream's pin.

    Raises:
        ValueError: a znode of that name could be taken for something else, or is none.
    """
    if _STREAM_NAME.fullmatch(stream) is None:
        raise ValueError(f"{stream!r} can't name a pin: give letters, digits, dots, underscores and hyphens, 63 at most, no hyphen first")
    return f"{_STREAM}{stream}"


def stream_of(pin: str) -> str | None:
    """Which stream a pin of that name is of; None for one of something else."""
    return pin.removeprefix(_STREAM) if pin.startswith(_STREAM) else None


def encode_stream_pin(pin: StreamPin) -> bytes:
    """The bytes that keep the log for a stream."""
    document = {"ledgerId": pin.lsn[0], "entryId": pin.lsn[1], "maxAgeSeconds": pin.max_age_seconds}
    return json.dumps(document, separators=(",", ":")).encode()


def decode_stream_pin(data: bytes) -> StreamPin:
    """What a stream needs.

    Raises:
        MalformedDataError: no JSON object with three whole numbers, the age above 0 and ten years at most. The node program
            keeps the whole log then.
    """
    ledger_id, entry_id, age = _whole_numbers(data, ("ledgerId", "entryId", "maxAgeSeconds"))
    if not 0 < age <= LONGEST_AGE_SECONDS:
        raise MalformedDataError(f"log pin {data[:200]!r}: expected a maxAgeSeconds above 0 and of {LONGEST_AGE_SECONDS} at most")
    return StreamPin((ledger_id, entry_id), age)


def _whole_numbers(data: bytes, names: tuple[str, ...]) -> tuple[int, ...]:
    try:
        document = json.loads(data)
        numbers = tuple(document[name] for name in names)
    except (ValueError, TypeError, KeyError) as error:
        raise MalformedDataError(f"log pin {data[:200]!r}: expected JSON with {' and '.join(names)}") from error
    if not all(type(number) is int for number in numbers):
        raise MalformedDataError(f"log pin {data[:200]!r}: expected whole numbers as {' and '.join(names)}")
    return numbers
