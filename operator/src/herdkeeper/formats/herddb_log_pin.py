"""What needs a tablespace's log, and from where on: `<herd root>/logPins/<tablespace uuid>/<name>`, where our node program runs.

JSON: ledgerId, entryId; the log is kept from that ledger on. `replica-<node>` is up to where that node's own disk has the tables, and
counts while the node is a replica; a pin of another name counts for as long as it is there. `checkpoint` and `archive` are the operator's.
Source: io.herdkeeper.node.release.LogPins (images/herddb). What the node program can't read keeps the whole log.
"""

from __future__ import annotations

import json

from herdkeeper.formats.java_data import MalformedDataError

CHECKPOINT = "checkpoint"
"""The log that the next Checkpoint needs."""
ARCHIVE = "archive"
"""The log that is not archived yet."""
BEGIN = (-1, -1)
"""Before the log's first entry: all of it is needed."""


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
    try:
        document = json.loads(data)
        lsn = document["ledgerId"], document["entryId"]
    except (ValueError, TypeError, KeyError) as error:
        raise MalformedDataError(f"log pin {data[:200]!r}: expected JSON with ledgerId and entryId") from error
    if not all(type(number) is int for number in lsn):
        raise MalformedDataError(f"log pin {data[:200]!r}: expected whole numbers as ledgerId and entryId")
    return lsn
