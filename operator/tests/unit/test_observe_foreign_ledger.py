"""Before the first SQL node is made: whether the ledgers that a database's root lists are its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from herdkeeper.clients.look import look, require_room
from herdkeeper.clients.zookeeper import Znodes
from herdkeeper.codecs.bookkeeper.layout import LedgerLayout, ledger_path
from herdkeeper.codecs.herddb.ledgers import ledgers_path
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.observe.cluster import _first_foreign_ledger
from herdkeeper.herddb.state.cluster import VersionedRecord
from herdkeeper.shared.unknown import Unknown

HERD, LEDGERS = "/ns/db", "/ns/bk/ledgers"
RECORDS = {"flights": VersionedRecord(TablespaceRecord("own", "flights", "a", ("a",), 1, 10_000), 1, 0.0)}


class Kept:
    """Znodes by path."""

    def __init__(self, found: Mapping[str, bytes]) -> None:
        self.found = dict(found)

    def read(self, path: str) -> tuple[bytes, int] | None:
        return (self.found[path], 0) if path in self.found else None

    def read_many(self, paths: Sequence[str]) -> tuple[bytes | None, ...]:
        return tuple(map(self.found.get, paths))


class KeptByLook(Kept):
    """Counts what is read of ledgers, as the operator's client does."""

    def read_many(self, paths: Sequence[str]) -> tuple[bytes | None, ...]:
        found = super().read_many(paths)
        require_room(sum(len(data) for data in found if data is not None))
        return found


def ledger_of(tablespace: str) -> bytes:
    lines = ("quorumSize: 1", "ensembleSize: 1", "length: 0", "lastEntryId: -1", "state: OPEN", "ackQuorumSize: 1", "digestType: CRC32C")
    custom = f'customMetadata {{ key: "tablespaceuuid" value: "{tablespace}" }}'
    segment = 'segment { ensembleMember: "a" firstEntryId: 0 }'
    return "\n".join(("BookieMetadataFormatVersion\t2", *lines, segment, custom)).encode()


@pytest.mark.parametrize(
    ("listed", "owners", "why"),
    [
        ((), {}, None),
        ((4, 7), {4: "own", 7: "own"}, None),
        ((4, 7), {7: "own"}, None),
        ((4, 7), {7: "other"}, "ledger 7, which /ns/db lists for the tablespace flights, is of another log"),
        ((4, 7), {}, "none of the ledgers that /ns/db lists for the tablespace flights exists there"),
        ((4, 7), {0: "other"}, "none of the ledgers that /ns/db lists for the tablespace flights exists there"),
    ],
)
def test_listed_ledgers_of_others_and_those_that_are_not_there_yet_are_not_the_databases_own(
    listed: tuple[int, ...], owners: Mapping[int, str], why: str | None
) -> None:
    """A cluster that was made anew gives the listed ids to whoever writes next. The oldest ledgers may have been dropped."""
    znodes = listing(listed, {ledger: ledger_of(owner) for ledger, owner in owners.items()})
    assert _first_foreign_ledger(znodes, HERD, LEDGERS, RECORDS) == why


def test_in_a_cluster_that_no_bookie_has_begun_no_listed_ledger_exists() -> None:
    znodes = listing((4,), {})
    cast(Kept, znodes).found.pop(f"{LEDGERS}/LAYOUT")
    assert str(_first_foreign_ledger(znodes, HERD, LEDGERS, RECORDS)).startswith("none of the ledgers")


def test_a_ledger_whose_metadata_cant_be_read_is_not_called_another_logs() -> None:
    assert isinstance(_first_foreign_ledger(listing((4,), {4: b"of a later version"}), HERD, LEDGERS, RECORDS), Unknown)


def test_of_a_long_log_no_more_is_kept_at_a_time_than_of_a_short_one() -> None:
    listed = range(3500)
    znodes = listing(listed, {ledger: ledger_of("own" if ledger < 3499 else "other") for ledger in listed})
    with look(most_bytes=1100 * len(ledger_of("other"))):
        assert str(_first_foreign_ledger(znodes, HERD, LEDGERS, RECORDS)).startswith("ledger 3499, ")


def listing(listed: Sequence[int], ledgers: Mapping[int, bytes]) -> Znodes:
    """What ZooKeeper has: these ids as the database's, and these ledgers' metadata."""
    added = ",".join("1" for _ in listed)
    document = f'{{"activeLedgers":{list(listed)},"ledgersTimestamps":[{added}],"firstLedger":-1}}'
    found = {
        f"{LEDGERS}/LAYOUT": b"2\norg.apache.bookkeeper.meta.LongHierarchicalLedgerManagerFactory:1",
        ledgers_path(HERD, "own"): document.encode(),
        **{LEDGERS + ledger_path(LedgerLayout.LONG_HIERARCHICAL, ledger): metadata for ledger, metadata in ledgers.items()},
    }
    return cast(Znodes, KeptByLook(found))
