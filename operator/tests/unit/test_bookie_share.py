"""What a bookie holds of a ledger, out of the ledger's metadata."""

from __future__ import annotations

from dataclasses import replace

import pytest

from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata, LedgerState, Segment
from herdkeeper.codecs.bookkeeper.share import Place, Share, read_record, record_of, share_of, unread_shares

ME, A, B, C = "me", "a", "b", "c"
CLOSED = LedgerMetadata(7, 3, 2, 2, LedgerState.CLOSED, 3000, 29, (Segment(0, (A, ME, B)), Segment(12, (A, C, B))))
OPEN = replace(CLOSED, state=LedgerState.OPEN, length=None, last_entry_id=None)


@pytest.mark.parametrize(
    ("situation", "metadata", "share"),
    [
        ("a ledger that does not name it", replace(CLOSED, segments=(Segment(0, (A, B, C)),)), None),
        ("two of three entries of the first twelve, 100 bytes each", CLOSED, Share(7, (Place(0, 1),), True, False, 800)),
        ("an open ledger whose writer has turned away from it", OPEN, Share(7, (Place(0, 1),), False, False)),
        (
            "an open ledger whose writer sends to it",
            replace(OPEN, segments=(Segment(0, (A, B, C)), Segment(3, (ME, B, C)))),
            Share(7, (Place(3, 0),), False, True),
        ),
        ("one in recovery counts as open", replace(OPEN, state=LedgerState.IN_RECOVERY), Share(7, (Place(0, 1),), False, False)),
        (
            "a closed ledger without entries",
            replace(CLOSED, last_entry_id=-1, length=0, segments=(Segment(0, (ME, A, B)),)),
            Share(7, (Place(0, 0),), True, False),
        ),
        (
            "a log of HerdDB names its tablespace",
            replace(OPEN, custom_metadata=(("tablespacename", b"flights"), ("leader", b"db-herddb-0"))),
            Share(7, (Place(0, 1),), False, False, tablespace="flights", writer="db-herddb-0"),
        ),
    ],
)
def test_a_share_is_what_the_metadata_names(situation, metadata, share):
    assert share_of(metadata, ME) == share, situation


def test_a_record_is_read_as_it_was_written():
    shares = (Share(7, (Place(0, 1), Place(12, 0)), True, False), Share(9, (Place(0, 2),), True, False))
    assert record_of(shares) == "7 0:1 12:0\n9 0:2\n"
    assert read_record(record_of(shares)) == {7: (Place(0, 1), Place(12, 0)), 9: (Place(0, 2),)}


def test_what_was_written_at_each_record_of_it_is_unread_at_all_places_that_were_recorded():
    first, second = ("7 0:1\n8 0:0\n9 0:2\n", frozenset({7, 9})), ("7 12:0\n", frozenset({7}))

    def left(*rounds: tuple[str, frozenset[int]]) -> dict[int, tuple[Place, ...]]:
        return {share.ledger_id: share.places for share in unread_shares(rounds)}

    assert left(first) == {7: (Place(0, 1),), 9: (Place(0, 2),)}
    assert left(first, second) == {7: (Place(0, 1), Place(12, 0)), 9: (Place(0, 2),)}
    assert left(first, second, ("7 0:1 12:0\n9 0:2\n", frozenset())) == {}


@pytest.mark.parametrize("line", ["7", "7 0", "x 0:1", "7 0:1 ", "-1 0:1"])
def test_a_line_that_is_none_is_refused_by_name(line):
    with pytest.raises(ValueError, match="of the record"):
        read_record(f"9 0:2\n{line}\n")
