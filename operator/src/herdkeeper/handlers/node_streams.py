"""One stream to each SQL node, whose end tells that the process died, a second or more before Kubernetes does.

A stream decides nothing: it has the node's cluster looked at. A node sends a line each second (images/herddb, `GET /alive`).
"""

from __future__ import annotations

import http.client
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from typing import Any

from herdkeeper.domain.names import HERDDB_HTTP_PORT
from herdkeeper.reconcile import Key

SILENCE_SECONDS = 5.0
"""A node that sends nothing for so long is looked at too: it may hang, or be cut off."""
RECONNECT_SECONDS = 1.0

Open = Callable[[str], Generator[bytes, None, None]]


def open_stream(address: str) -> Generator[bytes, None, None]:
    """The lines of the node at an IP address, until it ends. OSError or HTTPException when it can't be opened or falls silent."""
    host = f"[{address}]" if ":" in address else address
    with urllib.request.urlopen(f"http://{host}:{HERDDB_HTTP_PORT}/alive", timeout=SILENCE_SECONDS) as answer:
        while line := answer.readline():
            yield line


class NodeStreams:
    """The streams of all SQL nodes that the watches have told of. `lost` is called with the node's cluster, by any thread."""

    def __init__(self, lost: Callable[[Key], None], connect: Open = open_stream, reconnect_seconds: float = RECONNECT_SECONDS) -> None:
        self._lost = lost
        self._connect = connect
        self._reconnect_seconds = reconnect_seconds
        self._ends: dict[tuple[str, str], threading.Event] = {}
        self._lock = threading.Lock()

    def pod(self, owner: Key, body: Mapping[str, Any], *, over: bool) -> None:
        """A pod as a watch tells it: a new address gets a stream, one that is over loses it."""
        uid, address = body["metadata"]["uid"], (body.get("status") or {}).get("podIP")
        with self._lock:
            for known in [each for each in self._ends if each[0] == uid and (over or each[1] != address)]:
                self._ends.pop(known).set()
            if over or not address or (uid, address) in self._ends:
                return
            end = self._ends[uid, address] = threading.Event()
        threading.Thread(target=self._follow, args=(owner, address, end), name=f"alive-{address}", daemon=True).start()

    def stop(self) -> None:
        """End all streams."""
        with self._lock:
            for end in self._ends.values():
                end.set()
            self._ends.clear()

    def _follow(self, owner: Key, address: str, end: threading.Event) -> None:
        while not end.is_set():
            if self._read(address, end) and not end.is_set():
                self._lost(owner)
            end.wait(self._reconnect_seconds)

    def _read(self, address: str, end: threading.Event) -> bool:
        """Read until the stream ends; whether there was one."""
        lived = False
        try:
            with closing(self._connect(address)) as lines:
                for _ in lines:
                    lived = True
                    if end.is_set():
                        break
        except (OSError, urllib.error.URLError, http.client.HTTPException):
            pass
        return lived
