"""Closed ledgers for benchmarks: their metadata in ZooKeeper and, optionally, their entries on bookies, as a writer leaves them."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kazoo.client import KazooClient

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.entry import Entry, EntryDigest, entry_digest, master_key
from herdkeeper.codecs.bookkeeper.layout import LedgerLayout, ledger_path
from herdkeeper.codecs.bookkeeper.metadata import DigestType, LedgerState
from herdkeeper.codecs.bookkeeper.protocol import recovery_add_request
from herdkeeper.codecs.java_data import JavaDataWriter
from herdkeeper.codecs.protobuf_wire import write_field
from herdkeeper.tls.identity import own_identity
from herdkeeper_jobs.bookkeeper.start_tls import encrypted

PASSWORD = b"bench"
_IN_FLIGHT = 500
_TRANSACTION = 200


@dataclass(frozen=True, slots=True)
class SyntheticLedger:
    """A closed ledger with all of its entries on all of its bookies."""

    ledger_id: int
    bookies: tuple[str, ...]
    entries: int
    payload_bytes: int

    def metadata(self) -> bytes:
        """Its znode, as BookKeeper 4.18 writes it (format version 3; codecs/bookkeeper/metadata.py names the fields)."""
        segment = b"".join(write_field(1, name.encode()) for name in self.bookies) + write_field(2, 0)
        custom = ((b"application", b"herddb"), (b"component", b"commitlog"), (b"tablespacename", b"herd"))
        fields: list[tuple[int, int | bytes]] = [
            *((1, len(self.bookies)), (2, len(self.bookies)), (3, self.entries * self.payload_bytes), (4, self.entries - 1)),
            *((5, LedgerState.CLOSED.value), (6, segment), (7, DigestType.CRC32C.value), (8, PASSWORD), (9, len(self.bookies))),
            (10, 1_790_000_000_000 + self.ledger_id),
            *((11, write_field(1, key) + write_field(2, value)) for key, value in custom),
        ]
        message = b"".join(write_field(number, value) for number, value in fields)
        return b"BookieMetadataFormatVersion\t3\n" + JavaDataWriter().v_int(len(message)).to_bytes() + message


def write_metadata(client: KazooClient, root: str, ledgers: Sequence[SyntheticLedger]) -> None:
    """Writes the ledgers' znodes below the root, some hundred per transaction."""
    paths = [root + ledger_path(LedgerLayout.HIERARCHICAL, ledger.ledger_id) for ledger in ledgers]
    for parent in sorted({path.rpartition("/")[0] for path in paths}):
        client.ensure_path(parent)
    for start in range(0, len(ledgers), _TRANSACTION):
        transaction = client.transaction()
        for path, ledger in zip(paths[start : start + _TRANSACTION], ledgers[start : start + _TRANSACTION], strict=True):
            transaction.create(path, ledger.metadata())
        failed = [answer for answer in transaction.commit() if isinstance(answer, Exception)]
        if failed:
            raise SystemExit(f"ZooKeeper refused a ledger's metadata: {failed[0]!r}")


def write_entries(ledgers: Iterable[SyntheticLedger], addresses: dict[str, BookieAddress]) -> None:
    """Writes all entries on all of the ledgers' bookies, with equal random payloads. One thread per bookie."""
    digest = entry_digest(DigestType.CRC32C, PASSWORD)
    for ledger in ledgers:
        frames = [_add(ledger, digest, first) for first in range(0, ledger.entries, _IN_FLIGHT)]
        failures: list[BaseException] = []
        threads = [threading.Thread(target=_send, args=(addresses[name], frames, failures)) for name in ledger.bookies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise SystemExit(f"ledger {ledger.ledger_id} could not be written: {failures[0]!r}")


def _add(ledger: SyntheticLedger, digest: EntryDigest, first: int) -> tuple[int, bytes]:
    """Add requests for some entries, and their number."""
    chance = random.Random(ledger.ledger_id * 1_000_003 + first)  # noqa: S311 - nothing secret
    key, frames = master_key(PASSWORD), []
    last = min(first + _IN_FLIGHT, ledger.entries)
    for entry_id in range(first, last):
        payload = chance.randbytes(ledger.payload_bytes)
        entry = Entry(ledger.ledger_id, entry_id, entry_id - 1, (entry_id + 1) * ledger.payload_bytes, payload)
        frames.append(recovery_add_request(key, digest.pack(entry)))
    return last - first, b"".join(frames)


def _send(address: BookieAddress, frames: list[tuple[int, bytes]], failures: list[BaseException]) -> None:
    """Sends adds; the next ones wait for all answers to the previous ones."""
    answer = struct.Struct(">iiiqq")
    try:
        opened, identity = socket.create_connection((address.host, address.port), timeout=60), own_identity()
        with opened if identity is None else encrypted(opened, identity(), address.host) as stream:
            incoming = stream.makefile("rb")
            for count, frame in frames:
                stream.sendall(frame)
                codes = {code for _, _, code, _, _ in answer.iter_unpack(incoming.read(answer.size * count))}
                if codes != {0}:
                    raise ConnectionError(f"the bookie answered with the codes {sorted(codes)}")
    except (OSError, struct.error) as error:
        failures.append(error)
