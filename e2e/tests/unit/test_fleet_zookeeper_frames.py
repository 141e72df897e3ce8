"""The one answer of ZooKeeper that a stack's clients get rewritten."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from herdkeeper.codecs.zookeeper.membership import CONFIG_PATH
from herdkeeper_e2e.fleet.zookeeper_frames import ConfigRewriter

CONFIG = b"server.1=a:2888:3888:participant;2181\nversion=100000000"
STAT = bytes(range(68))


def _frame(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def _get_data(xid: int, path: str, operation: int = 4) -> bytes:
    return _frame(struct.pack(">iii", xid, operation, len(path)) + path.encode() + b"\0")


def _answer(xid: int, data: bytes, error: int = 0) -> bytes:
    body = struct.pack(">i", len(data)) + data + STAT if error == 0 else b""
    return _frame(struct.pack(">iqi", xid, 77, error) + body)


OPENING = _frame(b"a session, please"), _frame(b"here it is")


def _opened() -> ConfigRewriter:
    rewriter = ConfigRewriter(CONFIG)
    rewriter.from_client(OPENING[0])
    assert rewriter.from_server(OPENING[1]) == OPENING[1]
    return rewriter


def test_who_reads_the_membership_reads_that_of_his_stack() -> None:
    rewriter = _opened()
    rewriter.from_client(_get_data(5, CONFIG_PATH))
    stat = STAT[:52] + struct.pack(">i", len(CONFIG)) + STAT[56:]
    assert rewriter.from_server(_answer(5, b"the real one")) == _frame(struct.pack(">iqii", 5, 77, 0, len(CONFIG)) + CONFIG + stat)


def test_a_membership_that_the_real_one_does_not_have_is_there_all_the_same() -> None:
    rewriter = _opened()
    rewriter.from_client(_get_data(5, CONFIG_PATH))
    rewritten = rewriter.from_server(_answer(5, b"", error=-101))
    assert rewritten[4:24] == struct.pack(">iqii", 5, 77, 0, len(CONFIG))


def test_only_the_read_itself_is_answered_so_and_once() -> None:
    rewriter = _opened()
    rewriter.from_client(_get_data(1, CONFIG_PATH, operation=9) + _get_data(2, f"/x{CONFIG_PATH}") + _get_data(3, CONFIG_PATH))
    for xid in (1, 2):
        assert rewriter.from_server(_answer(xid, b"data")) == _answer(xid, b"data")
    assert rewriter.from_server(_answer(3, b"data")) != _answer(3, b"data")
    assert rewriter.from_server(_answer(3, b"data")) == _answer(3, b"data")


@given(st.lists(st.integers(1, 40), min_size=1))
def test_however_the_bytes_are_cut_the_answers_are_the_same(sizes: list[int]) -> None:
    requests = OPENING[0] + _get_data(1, "/a") + _get_data(2, CONFIG_PATH)
    answers = OPENING[1] + _answer(1, b"data") + _answer(2, b"real")
    rewriter, whole = ConfigRewriter(CONFIG), ConfigRewriter(CONFIG)
    whole.from_client(requests)
    for part in _cut(requests, sizes):
        rewriter.from_client(part)
    assert b"".join(map(rewriter.from_server, _cut(answers, sizes))) == whole.from_server(answers)


def _cut(data: bytes, sizes: list[int]) -> list[bytes]:
    parts = []
    while data:
        size = sizes[len(parts) % len(sizes)]
        parts.append(data[:size])
        data = data[size:]
    return parts
