"""Requests to a bookie that no client of this project makes: a writer's next entry, and another leader's fence."""

from __future__ import annotations

import struct

from synthetic_ledgers import PASSWORD

from herdkeeper.codecs.bookkeeper.entry import Entry, entry_digest, master_key
from herdkeeper.codecs.bookkeeper.metadata import DigestType
from herdkeeper.codecs.bookkeeper.protocol import LENGTH_BYTES, Operation, ReadCode
from herdkeeper_e2e.server_processes import LEDGERS_ROOT, Servers
from herdkeeper_jobs.bookkeeper.connection import BookieConnection
from herdkeeper_jobs.bookkeeper.metadata import open_catalog

_VERSION, _FENCE = 2 << 24, 1


def answer_to(running: Servers, bookie: str, body: bytes) -> ReadCode:
    """The code of the answer to a request."""
    with open_catalog(running.zookeeper, LEDGERS_ROOT) as catalog:
        address = catalog.bookie_addresses()[bookie]
    with BookieConnection(bookie, address, 15.0) as connection:
        connection._send(len(body).to_bytes(LENGTH_BYTES, "big") + body)
        return connection._receive().code


def fence(ledger: int, entry: int) -> bytes:
    """As another leader reads an entry."""
    return struct.pack(">iqq", _VERSION | Operation.READ.value << 16 | _FENCE, ledger, entry) + master_key(PASSWORD)


def add(ledger: int, entry: int, payload: bytes = b"a row!") -> bytes:
    """As a leader writes an entry, all of whose entries have the same size."""
    data = entry_digest(DigestType.CRC32C).pack(Entry(ledger, entry, entry - 1, (entry + 1) * len(payload), payload))
    return struct.pack(">i", _VERSION | Operation.ADD.value << 16) + master_key(PASSWORD) + data
