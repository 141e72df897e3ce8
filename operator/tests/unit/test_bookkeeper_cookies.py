"""Cookies: the bytes that a bookie of 4.18 wrote are read and written the same, and damaged ones are refused."""

from __future__ import annotations

import pytest

from herdkeeper.codecs.bookkeeper.cookie import Cookie, decode_cookie, encode_cookie
from herdkeeper.codecs.java_data import MalformedDataError

WRITTEN = b"""5
bookieHost: "bk-bookie-0-abc123"
journalDir: "/journal/journal"
ledgerDirs: "2\\t/ledgers/ledgers\\t/ledgers-1/ledgers"
instanceId: "8845dfc8-0259-431a-9a38-901631b07a58"
"""
READ = Cookie("bk-bookie-0-abc123", "/journal/journal", ("/ledgers/ledgers", "/ledgers-1/ledgers"), "8845dfc8-0259-431a-9a38-901631b07a58")


def test_a_cookie_is_read_and_written_as_bookkeeper_does():
    assert decode_cookie(WRITTEN) == READ
    assert encode_cookie(READ) == WRITTEN


def test_directories_of_indexes_are_part_of_a_cookie():
    with_indexes = Cookie("b", "/j", ("/l",), "i", ("/x", "/y"))
    assert decode_cookie(encode_cookie(with_indexes)) == with_indexes


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "expected the layout version 5"),
        (WRITTEN.replace(b"5", b"3", 1), "expected the layout version 5"),
        (WRITTEN[: WRITTEN.index(b"instanceId")], "has no instanceId"),
        (WRITTEN.replace(b'"2\\t', b'"3\\t'), "expected their number"),
        (b"5\nbookieHost", "has no value"),
    ],
)
def test_what_is_no_whole_cookie_is_refused(data, told):
    with pytest.raises(MalformedDataError, match=told):
        decode_cookie(data)
