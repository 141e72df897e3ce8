"""The end of a node's stream has its cluster looked at; nothing else does."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

from herdkeeper.handlers.node_streams import NodeStreams
from herdkeeper.reconcile import Key

CLUSTER = Key("HerdDBCluster", "demo", "db")
LONG = 10.0


class Nodes:
    """Addresses whose streams a test feeds: a line, None for the end, an error."""

    def __init__(self) -> None:
        self.opened: queue.Queue[str] = queue.Queue()
        self.told: queue.Queue[bytes | OSError | None] = queue.Queue()

    def connect(self, address: str) -> Generator[bytes, None, None]:
        self.opened.put(address)
        while True:
            told = self.told.get(timeout=LONG)
            if isinstance(told, OSError):
                raise told
            if told is None:
                return
            yield told


@pytest.fixture
def lost() -> queue.Queue[Key]:
    return queue.Queue()


@pytest.fixture
def nodes() -> Nodes:
    return Nodes()


@pytest.fixture
def streams(nodes: Nodes, lost: queue.Queue[Key]) -> Iterator[NodeStreams]:
    made = NodeStreams(lost.put, nodes.connect, reconnect_seconds=0.001)
    yield made
    made.stop()
    nodes.told.put(None)


def pod(address: str | None, uid: str = "a-uid") -> dict[str, Any]:
    return {"metadata": {"uid": uid}, "status": {"podIP": address} if address else {}}


@pytest.mark.parametrize("end", [None, OSError("reset")], ids=["ended", "broken or silent"])
def test_a_stream_that_lived_and_ended_is_told_once_and_opened_again(streams, nodes, lost, end) -> None:
    streams.pod(CLUSTER, pod("10.0.0.1"), over=False)
    nodes.told.put(b"alive\n")
    nodes.told.put(end)
    assert lost.get(timeout=LONG) == CLUSTER
    assert [nodes.opened.get(timeout=LONG) for _ in range(2)] == ["10.0.0.1"] * 2
    assert lost.empty()


def test_a_node_that_can_not_be_reached_is_tried_again_in_silence(streams, nodes, lost) -> None:
    streams.pod(CLUSTER, pod("10.0.0.1"), over=False)
    for _ in range(3):
        nodes.told.put(OSError("refused"))
    assert [nodes.opened.get(timeout=LONG) for _ in range(4)] == ["10.0.0.1"] * 4
    assert lost.empty()


def test_a_pod_has_one_stream_however_often_it_is_told(streams, nodes) -> None:
    streams.pod(CLUSTER, pod(None), over=False)
    for _ in range(3):
        streams.pod(CLUSTER, pod("10.0.0.1"), over=False)
    assert nodes.opened.get(timeout=LONG) == "10.0.0.1"
    assert nodes.opened.empty()


def test_a_pod_that_is_over_is_left(streams, nodes, lost) -> None:
    streams.pod(CLUSTER, pod("10.0.0.1"), over=False)
    assert nodes.opened.get(timeout=LONG) == "10.0.0.1"
    streams.pod(CLUSTER, pod("10.0.0.1"), over=True)
    nodes.told.put(b"alive\n")
    _wait_for(lambda: not any(thread.name == "alive-10.0.0.1" for thread in threading.enumerate()))
    assert lost.empty()


def _wait_for(condition: Callable[[], bool]) -> None:
    moment = threading.Event()
    for _ in range(1000):
        if condition():
            return
        moment.wait(0.01)
    raise AssertionError("it did not come true")
