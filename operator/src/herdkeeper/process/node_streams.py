"""An open stream to each SQL node. Its end shows that the process died, a second or more before Kubernetes does.

A node sends a line each second (images/herddb, `GET /alive`). A stream decides nothing: it requeues the node's cluster, and stores the time
and the content of the node's last report.
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
from herdkeeper.protocol.self_report import SelfReport, decode_line
from herdkeeper.shared.names import HerdDBNames, ObjectKey
from herdkeeper.shared.objects import Json, ip_address
from herdkeeper.shared.unknown import Unknown

SILENCE_SECONDS = 2.0
"""After this silence the node's cluster is requeued, too: the node may hang, or be cut off."""
RECONNECT_SECONDS = 1.0
PACE_SECONDS = 0.05
"""Shortest time between two lines, so that a node that sends more of them costs the operator no more."""

Open = Callable[[NodePort], Generator[bytes, None, None]]


def open_stream(kubernetes: KubernetesReader, port: NodePort) -> Generator[bytes, None, None]:
    """Yields the lines of a node until its stream ends. Raises OSError or HTTPException if it can't be opened or is silent, ssl.SSLError if
    the node can't be verified.
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
        self._liveness = liveness
        self._connect = connect
        self._reconnect_seconds = reconnect_seconds
        self._ends: dict[tuple[str, str], threading.Event] = {}
        self._lock = threading.Lock()

    def pod(self, owner: Key, body: Json, *, over: bool) -> None:
        """Handle a pod's event: open a stream to a new address, end that of a pod that is over."""
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
        self._liveness.forget(uid)

    def _read(self, owner: Key, uid: str, port: NodePort, end: threading.Event) -> bool:
        """Read until the stream ends. Returns whether it sent anything."""
        answered, before = False, SelfReport()
        try:
            with closing(self._connect(port)) as lines:
                for line in lines:
                    answered = True
                    report = decode_line(line)
                    self._liveness.heard(uid, report)
                    if end.is_set():
                        break
                    now = report or SelfReport()
                    if now.trouble() - before.trouble() or now.users != before.users:
                        self._lost(owner)
                    if now.blocked != before.blocked:
                        self._blocked(owner)
                    before = now
                    end.wait(PACE_SECONDS)
        except (OSError, http.client.HTTPException) as error:
            # nothing answered in time, or from that address; a node that can't be verified is not silent
            if isinstance(error, OSError) and not isinstance(error, ConnectionError | ssl.SSLError):
                return answered
        self._liveness.forget(uid)  # a closed or refused connection is no silence: the process has ended
        return answered
