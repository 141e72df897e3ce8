"""Forwards a local port to a pod's port."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

CHUNK = 64 * 1024


@contextlib.contextmanager
def listening(dial: Callable[[], Any]) -> Iterator[int]:
    """A port of 127.0.0.1. For each connection to it `dial` makes one to the other side, a socket; both end when one of them does.

    The first is made before anybody connects: what `dial` raises then is raised here.
    """
    made = [dial()]
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepting = (server, lambda: made.pop() if made else dial())
        threading.Thread(target=_accept, args=accepting, name="port-forward", daemon=True).start()
        try:
            yield int(server.getsockname()[1])
        finally:
            # wakes the thread, which close alone does not
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            for unused in made:
                unused.close()


def _accept(server: socket.socket, dial: Callable[[], Any]) -> None:
    while True:
        try:
            near, _ = server.accept()
        except OSError:
            return
        try:
            far = dial()
        except Exception:  # whatever the error is, the client sees a closed connection
            near.close()
            continue
        for source, target in ((near, far), (far, near)):
            threading.Thread(target=_pump, args=(source, target), name="port-forward", daemon=True).start()


def _pump(source: Any, target: Any) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
