"""The end of a node's stream has its cluster looked at; nothing else does."""

from __future__ import annotations

import errno
import itertools
import json
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPException, RemoteDisconnected
from typing import Any

import pytest

from herdkeeper.clients.bounded_http import LineStream, TooLargeError
from herdkeeper.clients.deleted_resources import DeletedResources
from herdkeeper.clients.liveness import NodeLiveness
from herdkeeper.clients.object_cache import ObjectCache
from herdkeeper.engine.key import Key
from herdkeeper.engine.queue import KeyQueue
from herdkeeper.herddb.observe.address import NodePort
from herdkeeper.herddb.state.nodes import unasked_nodes
from herdkeeper.process import node_streams
from herdkeeper.process.node_streams import NodeStreams
from herdkeeper.process.queues import Queues
from herdkeeper.process.references import References
from herdkeeper.process.watched_kinds import WATCHED_KINDS
from herdkeeper.process.watches import WatchEvents
from herdkeeper.protocol.self_report import ReportedUsers, SelfReport, decode_line
from herdkeeper.shared import names
from herdkeeper.shared.unknown import Unknown

CLUSTER = Key("HerdDBCluster", "demo", "db")
LONG = 120.0


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream is silent only where its test says so."""
    monkeypatch.setattr(node_streams, "SILENCE_SECONDS", LONG)


class Told:
    """A stream that a test feeds: a line, None for the end, an error. A byte in a socket tells that something was put."""

    ready = False

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def fileno(self) -> int:
        return self._nodes.told_here.fileno()

    def next_line(self) -> bytes | None:
        try:
            self._nodes.told_here.recv(1)
        except BlockingIOError:
            return None
        told = self._nodes.told.get(timeout=LONG)
        if isinstance(told, OSError | HTTPException):
            raise told
        if told is None:
            raise RemoteDisconnected
        return told

    def close(self) -> None:
        self._nodes.closed.put(None)


class Nodes:
    """Addresses whose streams a test feeds."""

    def __init__(self) -> None:
        self.opened: queue.Queue[str] = queue.Queue()
        self.closed: queue.Queue[None] = queue.Queue()
        self.told: queue.Queue[bytes | OSError | HTTPException | None] = queue.Queue()
        self.refusals: queue.Queue[Exception] = queue.Queue()
        self._telling, self.told_here = socket.socketpair()
        self.told_here.setblocking(False)

    def connect(self, port: NodePort) -> Told:
        self.opened.put(port.host)
        with suppress(queue.Empty):
            raise self.refusals.get_nowait()
        return Told(self)

    def tell(self, told: bytes | OSError | HTTPException | None) -> None:
        self.told.put(told)
        self._telling.send(b".")


@pytest.fixture
def lost() -> queue.Queue[Key]:
    return queue.Queue()


@pytest.fixture
def nodes() -> Nodes:
    return Nodes()


@pytest.fixture
def liveness() -> NodeLiveness:
    return NodeLiveness()


@pytest.fixture
def blocked() -> queue.Queue[Key]:
    return queue.Queue()


@pytest.fixture
def streams(nodes: Nodes, lost: queue.Queue[Key], blocked: queue.Queue[Key], liveness: NodeLiveness) -> Iterator[NodeStreams]:
    made = NodeStreams(lost.put, blocked.put, liveness, nodes.connect, reconnect_seconds=0.001)
    yield made
    made.stop()


def pod(address: str | None, uid: str = "a-uid") -> dict[str, Any]:
    return {"metadata": {"uid": uid, "name": "db-herddb-0"}, "status": {"podIP": address} if address else {}}


@pytest.mark.parametrize("end", [None, OSError("reset")], ids=["ended", "broken or silent"])
def test_a_stream_that_lived_and_ended_is_told_once_and_opened_again(streams, nodes, lost, end) -> None:
    streams.pod(CLUSTER, pod("10.0.0.1"), over=False)
    nodes.tell(b"alive\n")
    nodes.tell(end)
    assert lost.get(timeout=LONG) == CLUSTER
    assert [nodes.opened.get(timeout=LONG) for _ in range(2)] == ["10.0.0.1"] * 2
    assert lost.empty()


def test_a_node_that_can_not_be_reached_is_tried_again_in_silence(streams, nodes, lost) -> None:
    for _ in range(3):
        nodes.refusals.put(OSError("refused"))
    streams.pod(CLUSTER, pod("10.0.0.1"), over=False)
    assert [nodes.opened.get(timeout=LONG) for _ in range(4)] == ["10.0.0.1"] * 4
    assert lost.empty()


def test_a_node_that_comes_back_waits_for_none_whose_machine_is_lost(nodes, lost, blocked, liveness, monkeypatch) -> None:
    monkeypatch.setattr(node_streams, "MOST_ATTEMPTS", 1)
    attempts, hangs, over = itertools.count(), threading.Event(), threading.Event()

    def connect(port: NodePort) -> Told:
        if port.host == "10.0.0.2":
            return nodes.connect(port)
        if next(attempts):
            hangs.set()
            over.wait()
        raise TimeoutError

    made = NodeStreams(lost.put, blocked.put, liveness, connect, reconnect_seconds=0.001)
    made.pod(CLUSTER, pod("10.0.0.1", "of-a-lost-machine"), over=False)
    try:
        assert hangs.wait(LONG)
        made.pod(CLUSTER, pod("10.0.0.2", "that-comes-back"), over=False)
        assert nodes.opened.get(timeout=LONG) == "10.0.0.2"
    finally:
        over.set()
        made.stop()


def test_a_pod_has_one_stream_however_often_it_is_told(streams, nodes) -> None:
    streams.pod(CLUSTER, pod(None), over=False)
    for _ in range(3):
        streams.pod(CLUSTER, pod("10.0.0.1"), over=False)
    assert nodes.opened.get(timeout=LONG) == "10.0.0.1"
    assert nodes.opened.empty()


def test_a_pod_that_is_over_is_left(streams, nodes, lost, liveness) -> None:
    streams.pod(CLUSTER, pod("10.0.0.1"), over=False)
    assert nodes.opened.get(timeout=LONG) == "10.0.0.1"
    nodes.tell(b"alive\n")
    _wait_for(lambda: liveness.silent_seconds("a-uid") is not None)
    streams.pod(CLUSTER, pod("10.0.0.1"), over=True)
    nodes.closed.get(timeout=LONG)
    _wait_for(lambda: liveness.silent_seconds("a-uid") is None)
    assert lost.empty()
    assert nodes.opened.empty()


@pytest.mark.parametrize(
    ("end", "is_silent"),
    [
        (TimeoutError("no line"), True),
        (OSError(errno.EHOSTUNREACH, "no route"), True),
        (None, False),
        (ConnectionResetError(), False),
        (ConnectionRefusedError(), False),
        (TooLargeError(), False),
        (ssl.SSLCertVerificationError("another authority"), False),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_only_a_node_that_does_not_answer_at_all_is_silent(streams, nodes, lost, liveness, end, is_silent) -> None:
    streams.pod(CLUSTER, pod("10.0.0.1"), over=False)
    nodes.tell(b"alive\n")
    nodes.tell(end)
    assert lost.get(timeout=LONG) == CLUSTER
    assert (liveness.silent_seconds("a-uid") is not None) == is_silent


def test_a_node_that_sends_nothing_is_silent(streams, nodes, lost, liveness, monkeypatch) -> None:
    monkeypatch.setattr("herdkeeper.process.node_streams.SILENCE_SECONDS", 0.1)
    streams.pod(CLUSTER, pod("10.0.0.1"), over=False)
    nodes.tell(b"alive\n")
    assert lost.get(timeout=LONG) == CLUSTER
    assert liveness.silent_seconds("a-uid") is not None


def test_a_connection_that_comes_after_its_pod_is_over_is_closed(lost, blocked, liveness) -> None:
    asked, answered, closed = threading.Event(), threading.Event(), threading.Event()

    class Late(Told):
        def close(self) -> None:
            closed.set()

    def connect(_port: NodePort) -> Told:
        asked.set()
        answered.wait(LONG)
        return Late(Nodes())

    streams = NodeStreams(lost.put, blocked.put, liveness, connect)
    streams.pod(CLUSTER, pod("10.0.0.1"), over=False)
    assert asked.wait(LONG)
    streams.pod(CLUSTER, pod("10.0.0.1"), over=True)
    answered.set()
    assert closed.wait(LONG)
    streams.stop()


def test_lines_that_come_together_are_all_heard_and_in_their_order(lost, blocked, liveness) -> None:
    here, there = socket.socketpair()
    streams = NodeStreams(lost.put, blocked.put, liveness, lambda _: LineStream(here))
    streams.pod(CLUSTER, pod("10.0.0.1"), over=False)
    there.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + line() + line(failed=("app",)) + line() + line(failed=("app",)))
    assert [lost.get(timeout=LONG) for _ in range(2)] == [CLUSTER] * 2
    assert liveness.last_report("a-uid") == SelfReport(zookeeper_steady=2.5, failed=("app",))
    there.sendall(line(answers=False))
    assert lost.get(timeout=LONG) == CLUSTER
    streams.stop()


def test_a_node_that_sends_line_after_line_is_read_no_faster_than_the_pace(lost, blocked, liveness, monkeypatch) -> None:
    """Its lines come one by one, so that none waits for another one."""
    monkeypatch.setattr("herdkeeper.process.node_streams.PACE_SECONDS", LONG)
    ends = {host: socket.socketpair() for host in ("10.0.0.1", "10.0.0.2", "10.0.0.3")}
    streams = NodeStreams(lost.put, blocked.put, liveness, lambda port: LineStream(ends[port.host][0]))
    begin = b"HTTP/1.1 200 OK\r\n\r\n"
    for number, host in enumerate(ends):  # what a later one sends is read only after all that came before
        ends[host][1].sendall(begin + line())
        streams.pod(CLUSTER, pod(host, f"uid-{number}"), over=False)
        _wait_for(lambda uid=f"uid-{number}": liveness.last_report(uid) is not None)
        ends["10.0.0.1"][1].sendall(line(failed=("app",)))
    assert liveness.last_report("uid-0") == SelfReport(zookeeper_steady=2.5)
    assert lost.empty()
    streams.stop()


def test_an_error_that_nobody_foresaw_ends_no_stream_for_good(streams, nodes, lost, liveness) -> None:
    nodes.refusals.put(KeyError("ca.crt"))
    streams.pod(CLUSTER, pod("10.0.0.1"), over=False)
    nodes.tell(b"alive\n")
    _wait_for(lambda: liveness.silent_seconds("a-uid") is not None)
    assert lost.empty()


def line(*, answers: bool = True, waits: tuple[str, ...] = (), failed: tuple[str, ...] = (), **more: Any) -> bytes:
    said = {"zooKeeper": {"answers": answers, "seconds": 2.5}, "unacknowledgedSeconds": dict.fromkeys(waits, 1.5), "failed": failed, **more}
    return b"alive " + json.dumps(said).encode() + b"\n"


def test_a_node_that_tells_of_a_trouble_is_looked_at_once_for_each(streams, nodes, lost, liveness) -> None:
    streams.pod(CLUSTER, pod("10.0.0.1"), over=False)
    for said in (line(), line(answers=False), line(answers=False), line(answers=False, waits=("app",)), line(), line(failed=("app",))):
        nodes.tell(said)
    _wait_for(lambda: liveness.last_report("a-uid") == SelfReport(zookeeper_steady=2.5, failed=("app",)))
    assert [lost.get(timeout=LONG) for _ in range(3)] == [CLUSTER] * 3
    assert lost.empty()


def test_a_node_that_lets_other_users_in_is_looked_at_once(streams, nodes, lost, liveness) -> None:
    streams.pod(CLUSTER, pod("10.0.0.1"), over=False)
    old, new = ({"revision": revision, "refused": None} for revision in ("old", "new"))
    refusing = {"revision": "new", "refused": "/credentials/users: user line 2"}
    for said in (old, old, new, new, refusing):
        nodes.tell(line(users=said))
    _wait_for(lambda: liveness.last_report("a-uid") == SelfReport(zookeeper_steady=2.5, users=ReportedUsers("new", refusing["refused"])))
    assert [lost.get(timeout=LONG) for _ in range(3)] == [CLUSTER] * 3
    assert lost.empty()


def test_a_leader_on_which_statements_hang_is_told_of_when_that_has_lasted_and_when_it_is_over(streams, nodes, lost, blocked, liveness):
    streams.pod(CLUSTER, pod("10.0.0.1"), over=False)
    for seconds in (59, 60, 61, 62):
        nodes.tell(line(blockedSeconds={"app": seconds}))
    nodes.tell(line(blockedSeconds={}))
    nodes.tell(line(answers=False))
    _wait_for(lambda: liveness.last_report("a-uid") == SelfReport(zookeeper_silent=2.5))
    assert [blocked.get(timeout=LONG) for _ in range(2)] == [CLUSTER] * 2
    assert blocked.empty()
    assert lost.get(timeout=LONG) == CLUSTER, "of ZooKeeper alone"
    assert lost.empty()


def test_what_a_process_said_is_forgotten_with_it() -> None:
    signs = NodeLiveness()
    signs.heard("a-uid", SelfReport(zookeeper_silent=3.0))
    signs.forget("a-uid")
    assert signs.last_report("a-uid") is None


@pytest.mark.parametrize(
    ("said", "report"),
    [
        (line(), SelfReport(zookeeper_steady=2.5)),
        (line(answers=False, waits=("app",)), SelfReport(zookeeper_silent=2.5, unacknowledged={"app": 1.5})),
        (line(blockedSeconds={"app": 75}), SelfReport(zookeeper_steady=2.5, blocked_seconds={"app": 75.0})),
        (line(users=None), SelfReport(zookeeper_steady=2.5)),
        (line(users={"revision": None, "refused": None}), SelfReport(zookeeper_steady=2.5, users=ReportedUsers(None))),
        (b"alive\n", None),
        (b"alive {\n", None),
        (b"alive []\n", None),
        (b'alive {"zooKeeper":{"answers":true}}\n', None),
    ],
    ids=[
        "well",
        "in trouble",
        "blocked",
        "fixed users",
        "users of no revision",
        "an older program",
        "cut",
        "something else",
        "incomplete",
    ],
)
def test_a_line_tells_what_the_node_says_of_itself_or_only_that_it_lives(said: bytes, report: SelfReport | None) -> None:
    assert decode_line(said) == report


def test_silence_is_told_in_seconds_since_the_last_sign_and_not_of_who_was_never_heard() -> None:
    clock = iter([100.0, 103.5])
    signs = NodeLiveness(now=lambda: next(clock))
    assert signs.silent_seconds("a-uid") is None
    signs.heard("a-uid")
    assert signs.silent_seconds("a-uid") == 3.5
    signs.forget("a-uid")
    assert signs.silent_seconds("a-uid") is None


def test_a_node_that_is_silent_or_reports_that_zookeeper_is_silent_is_not_asked() -> None:
    reports = {"cut-off": SelfReport(zookeeper_silent=2.0), "waiting": SelfReport(zookeeper_silent=1.9)}
    unasked = unasked_nodes({"silent": 2.0, "late": 1.9, "cut-off": 0.1, "waiting": 0.1}, reports)
    assert unasked == {
        "silent": Unknown("its process sends no heartbeat"),
        "cut-off": Unknown("it reports that ZooKeeper does not answer it"),
    }


STATEFUL_SET = {
    "kind": "StatefulSet",
    "metadata": {
        "name": "db-herddb",
        "namespace": "demo",
        "uid": "ours",
        "resourceVersion": "1",
        "labels": names.labels("herddb", CLUSTER.kind, CLUSTER.name),
    },
}


def told_pod(owner_uid: str | None, version: int, address: str = "10.0.0.1") -> dict[str, Any]:
    """A pod with the right name and the right labels."""
    owner = [{"kind": "StatefulSet", "name": "db-herddb", "uid": owner_uid, "controller": True}] if owner_uid else []
    metadata = {"name": "db-herddb-0", "namespace": "demo", "uid": "a-uid", "resourceVersion": str(version), "ownerReferences": owner}
    return {
        "kind": "Pod",
        "metadata": {**metadata, "labels": STATEFUL_SET["metadata"]["labels"]},
        "status": {"podIP": address, "phase": "Running"},
    }


@pytest.fixture
def watches(streams: NodeStreams) -> Callable[[dict[str, Any]], None]:
    queues = Queues(KeyQueue(), KeyQueue())
    told = WatchEvents(queues, ObjectCache(), streams, References(), DeletedResources())
    kinds = {kind.kind: kind for kind in WATCHED_KINDS}
    return lambda body: told.event(kinds[body["kind"]], {"type": "MODIFIED", "object": body})


@pytest.mark.parametrize("owner", [None, "somebody-else-s"])
def test_nothing_is_read_from_a_pod_with_the_right_labels_that_our_stateful_set_did_not_make(watches, nodes, owner) -> None:
    watches(STATEFUL_SET)
    watches(told_pod(owner, 2))
    watches(told_pod("ours", 3, "10.0.0.2"))
    assert nodes.opened.get(timeout=LONG) == "10.0.0.2"
    assert nodes.opened.empty()


def test_a_pod_that_was_told_of_before_its_stateful_set_is_listened_to_as_soon_as_that_is_known(watches, nodes) -> None:
    watches(told_pod("ours", 2))
    assert nodes.opened.empty()
    watches(STATEFUL_SET)
    assert nodes.opened.get(timeout=LONG) == "10.0.0.1"


def _wait_for(condition: Callable[[], bool]) -> None:
    moment = threading.Event()
    for _ in range(10_000):
        if condition():
            return
        moment.wait(0.01)
    raise AssertionError("it did not come true")
