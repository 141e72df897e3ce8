"""One stream to each SQL node, whose end tells that the process died, a second or more before Kubernetes does.

A stream decides nothing: it has the node's cluster looked at, and remembers when the node was heard last and what it said of itself. A node
sends a line each second (images/herddb, `GET /alive`).
"""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Callable, Generator
from contextlib import closing

from herdkeeper.clients import bounded_http
from herdkeeper.clients.kubernetes import KubernetesReader
from herdkeeper.clients.liveness import NodeLiveness
from herdkeeper.engine.key import Key
from herdkeeper.herddb.observe.address import NodePort, port_of_pod, with_authorities
from herdkeeper.protocol.self_report import ReportedUsers, decode_line
from herdkeeper.shared.names import HerdDBNames, ObjectKey
from herdkeeper.shared.objects import Json, ip_address
from herdkeeper.shared.unknown import Unknown

SILENCE_SECONDS = 2.0
"""A node that sends nothing for so long is looked at too: it may hang, or be cut off."""
RECONNECT_SECONDS = 1.0
PACE_SECONDS = 0.05
"""No line is read sooner after the last one: who sends more than that costs the operator no more."""

Open = Callable[[NodePort], Generator[bytes, None, None]]


def open_stream(kubernetes: KubernetesReader, port: NodePort) -> Generator[bytes, None, None]:
    """The lines of a node, until it ends. OSError or HTTPException when it can't be opened or falls silent, ssl.SSLError when the node
    can't be verified.
    """
    address = with_authorities(port, kubernetes)
    if isinstance(address, Unknown):
        raise ssl.SSLError(address.why)
    yield from bounded_http.lines(bounded_http.Question("GET", address.url("/alive"), SILENCE_SECONDS, {}, trust=address.trust))


class NodeStreams:
    """The streams of all SQL nodes that the watches have seen.

    `lost` is called with the cluster of a node that is lost, or that reports new trouble or other users. `blocked` is called when the set
    of tablespaces changes on which a node reports hanging statements. Any thread may call them.
    """

    def __init__(
        self,
        lost: Callable[[Key], None],
        blocked: Callable[[Key], None],
        liveness: NodeLiveness,
        connect: Open,
        reconnect_seconds: float = RECONNECT_SECONDS,
    ) -> None:
        self._lost = lost
        self._blocked = blocked
        self._signs_of_life = liveness
        self._connect = connect
        self._reconnect_seconds = reconnect_seconds
        self._ends: dict[tuple[str, str], threading.Event] = {}
        self._lock = threading.Lock()

    def pod(self, owner: Key, body: Json, *, over: bool) -> None:
        """A pod as a watch tells it: a new address gets a stream, one that is over loses it."""
        uid, address = body["metadata"]["uid"], ip_address(body)
        with self._lock:
            for known in [each for each in self._ends if each[0] == uid and (over or each[1] != address)]:
                self._ends.pop(known).set()
            if over or not address or (uid, address) in self._ends:
                return
            end = self._ends[uid, address] = threading.Event()
        port = port_of_pod(HerdDBNames(ObjectKey(owner.namespace, owner.name)), body)
        threading.Thread(target=self._follow, args=(owner, uid, port, end), name=f"alive-{address}", daemon=True).start()

    def stop(self) -> None:
        """End all streams."""
        with self._lock:
            for end in self._ends.values():
                end.set()
            self._ends.clear()

    def _follow(self, owner: Key, uid: str, port: NodePort, end: threading.Event) -> None:
        while not end.is_set():
            if self._read(owner, uid, port, end) and not end.is_set():
                self._lost(owner)
            end.wait(self._reconnect_seconds)
        self._signs_of_life.forget(uid)

    def _read(self, owner: Key, uid: str, port: NodePort, end: threading.Event) -> bool:
        """Read until the stream ends; whether there was one."""
        lived = False
        known: frozenset[str] = frozenset()
        blocked: frozenset[str] = frozenset()
        users: ReportedUsers | None = None
        try:
            with closing(self._connect(port)) as lines:
                for line in lines:
                    lived = True
                    said = decode_line(line)
                    self._signs_of_life.heard(uid, said)
                    if end.is_set():
                        break
                    trouble = said.trouble() if said is not None else frozenset()
                    told = said.users if said is not None else None
                    if trouble - known or told != users:
                        self._lost(owner)
                    stopped = said.blocked if said is not None else frozenset()
                    if stopped != blocked:
                        self._blocked(owner)
                    known, users, blocked = trouble, told, stopped
                    end.wait(PACE_SECONDS)
        except (OSError, http.client.HTTPException) as error:
            if _is_silence(error):
                return lived
        self._signs_of_life.forget(uid)  # somebody closed or refused: the process has ended, which is no silence
        return lived


def _is_silence(error: Exception) -> bool:
    """Whether nobody answered at all: in time, or from that address. A node that can't be verified is not silent."""
    return isinstance(error, OSError) and not isinstance(error, ConnectionError | ssl.SSLError)
