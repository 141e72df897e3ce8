"""An external ensemble that has more than any: more bytes, more bookies, more tablespaces, stranger names. Its address is anybody's."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kazoo.exceptions import ConnectionLoss
from test_plan_herddb import LOG

from herdkeeper.bookkeeper.observe.bookies import MOST_BOOKIES, read_ledgers_metadata
from herdkeeper.bookkeeper.state.bookies import LedgersMetadata
from herdkeeper.clients import zookeeper_member
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.look import MOST_LOOK_BYTES, look
from herdkeeper.clients.zookeeper import MOST_DATA, EnsembleError, EnsembleSessions
from herdkeeper.clients.zookeeper_member import MOST_BYTES_WAITING, MemberSession
from herdkeeper.codecs.bookkeeper.layout import LedgerLayout
from herdkeeper.engine.execute_metadata import _delete_ledger
from herdkeeper.herddb.observe.cluster import _ask, _records
from herdkeeper.herddb.observe.nodes import read_node
from herdkeeper.herddb.state.cluster import MOST_READ_TABLESPACES
from herdkeeper.shared.unknown import Unknown

MEBIBYTE = 1 << 20
LONG = 30.0
_SYNC, _CHILDREN, _DATA = 9, 8, 4
_STAT = bytes(68)


@contextmanager
def ensemble(data: bytes, names: int = 0) -> Iterator[str]:
    """A member on which each znode has this data, and so many children. Gives its `host:port`."""
    children = struct.pack(">i", names) + b"".join(struct.pack(">i", 8) + b"%08d" % number for number in range(names))
    answers = {_DATA: struct.pack(">i", len(data)) + data + _STAT, _CHILDREN: children, _SYNC: struct.pack(">i", 1) + b"/"}
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_accept, args=(listening, answers), daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def _accept(listening: socket.socket, answers: dict[int, bytes]) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=_serve, args=(connection, answers), daemon=True).start()


def _serve(connection: socket.socket, answers: dict[int, bytes]) -> None:
    with connection, connection.makefile("rwb") as stream, suppress(OSError, struct.error):
        _message(stream)
        _tell(stream, struct.pack(">iiqi", 0, 30_000, 1, 16) + bytes(17))
        while True:
            number, kind = struct.unpack(">ii", _message(stream)[:8])
            _tell(stream, struct.pack(">iqi", number, 1, 0) + answers.get(kind, b""))


def _message(stream: Any) -> bytes:
    return bytes(stream.read(struct.unpack(">i", stream.read(4))[0]))


def _tell(stream: Any, message: bytes) -> None:
    stream.write(struct.pack(">i", len(message)) + message)
    stream.flush()


def test_one_observation_keeps_no_more_of_an_ensemble_than_fits_into_memory_several_times() -> None:
    with ensemble(b"x" * MEBIBYTE, names=1) as address:
        sessions = EnsembleSessions()
        with look():
            for number in range(MOST_LOOK_BYTES // MEBIBYTE):
                assert sessions.at(address).read(f"/{number}") is not None
            with pytest.raises(EnsembleError, match="read more than"):
                sessions.at(address).read("/another")
        with look():
            assert sessions.at(address).children("/") == ("00000000",), "the next one begins anew"
        sessions.stop()


def test_a_database_with_any_number_of_ledgers_is_deleted_in_one_go() -> None:
    """Of each ledger only its owner is looked for."""
    with ensemble(b"x" * MEBIBYTE) as address:
        sessions = EnsembleSessions()
        with look():
            for ledger in range(MOST_LOOK_BYTES // MEBIBYTE + 2):
                _delete_ledger(sessions.at(address), "/root", LedgerLayout.HIERARCHICAL, ledger, "u")
        sessions.stop()


def test_a_znode_that_is_larger_than_members_take_is_not_decoded() -> None:
    with ensemble(b";" * (MOST_DATA + 1)) as address:
        sessions = EnsembleSessions()
        with pytest.raises(EnsembleError, match="bytes are refused"):
            sessions.at(address).read("/a")
        sessions.stop()


def test_the_names_of_children_count_with_the_room_that_they_take() -> None:
    with ensemble(b"", names=100_000) as address:
        sessions = EnsembleSessions()
        znodes = sessions.at(address)
        with look(), pytest.raises(EnsembleError, match="read more than"):
            all(znodes.children("/") for _ in range(10))
        sessions.stop()


def test_a_list_of_too_many_children_is_refused_with_its_size_and_not_as_a_lost_connection() -> None:
    with ensemble(b"", names=400_000) as address:
        sessions = EnsembleSessions()
        with pytest.raises(EnsembleError, match="an answer of 4800020 bytes is refused"):
            sessions.at(address).children("/")
        sessions.stop()


def test_answers_that_nobody_has_taken_yet_take_no_more_memory_than_a_few_do() -> None:
    up = threading.Event()
    with ensemble(b"x" * MEBIBYTE) as address:
        session = MemberSession(address, up.set)
        assert up.wait(LONG)
        requests = [session.client.get_async("/a") for _ in range(2 * MOST_BYTES_WAITING // MEBIBYTE)]
        with pytest.raises(ConnectionLoss):
            all(request.get(timeout=LONG) for request in requests)
        session.end().join(LONG)


class Names:
    """Each znode has so many children, named as bookies are."""

    def __init__(self, children: int) -> None:
        self._children = children

    def at(self, _address: str, _identity: object = None) -> Names:
        return self

    def read(self, _path: str) -> tuple[bytes, int]:
        return b"", 0

    def read_changed(self, _path: str, _wake: object = None) -> None:
        return None

    def children(self, path: str, _wake: object = None) -> tuple[str, ...]:
        return () if "underreplication" in path else tuple(f"bk-bookie-{number}" for number in range(self._children))


def test_metadata_with_more_bookies_than_a_cluster_can_have_is_not_looked_through() -> None:
    """What follows for each of them compares it with all others."""
    assert isinstance(read_ledgers_metadata(cast(Any, Names(MOST_BOOKIES)), "/root"), LedgersMetadata)
    found = read_ledgers_metadata(cast(Any, Names(MOST_BOOKIES + 1)), "/root")
    assert isinstance(found, Unknown)
    assert f"names {MOST_BOOKIES + 1} bookies" in found.why


def test_of_tablespaces_without_end_none_is_read() -> None:
    """For each of them something would be kept of each node."""
    for tablespaces, why in ((MOST_READ_TABLESPACES, None), (MOST_READ_TABLESPACES + 1, f"has {MOST_READ_TABLESPACES + 1} tablespaces")):
        reader = ClusterReader(cast(Any, None), cast(Any, Names(tablespaces)), cast(Any, None))
        found = _ask(reader, LOG, partial(_records, root="/herd", reader=reader))
        assert found == {} if why is None else isinstance(found, Unknown) and why in found.why


@pytest.mark.parametrize("more", [0, 1])
def test_of_a_node_that_tells_of_tablespaces_without_end_nothing_is_known(more: int) -> None:
    """Who may create pods may have one taken for a SQL node."""
    told = [{"name": str(number), "uuid": "u", "role": "follower", "ready": True} for number in range(MOST_READ_TABLESPACES + more)]
    reader = SimpleNamespace(http=SimpleNamespace(get=lambda _url, _trust: told))
    found = read_node(cast(Any, reader), cast(Any, SimpleNamespace(url=lambda path: path, trust=None)))
    assert isinstance(found, Unknown if more else tuple)


@pytest.mark.parametrize("name", ["..", ".", "a/../b"])
def test_a_name_that_leads_nowhere_is_an_answer_that_can_not_be_had(name: str) -> None:
    """A SQL user gives replicas such names by ALTER TABLESPACE. What else is known of the cluster counts all the same."""
    with ensemble(b"x") as address:
        sessions = EnsembleSessions()
        with pytest.raises(EnsembleError):
            sessions.at(address).changed_many([f"/herd/replicas/u/{name}"])
        assert sessions.at(address).read("/herd") == (b"x", 0)
        sessions.stop()


def test_a_member_that_tells_of_other_names_each_time_has_no_watches_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper_member, "MOST_WATCHED", 5)
    woken = threading.Event()
    with ensemble(b"x") as address:
        sessions = EnsembleSessions()
        for number in range(7):
            assert not woken.is_set()
            assert sessions.at(address).read(f"/{number}", lambda _: woken.set()) is not None
        assert sessions.at(address).read("/7") is not None
        assert woken.wait(LONG), "another session has taken its place, and what waits looks again"
        sessions.stop()
