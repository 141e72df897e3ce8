"""Ports for server processes, each held for one process of this user until that process ends.

A server may listen late, as a ZooKeeper member does once it leads, or let its port go for a moment at a restart. The next test must not get
that port meanwhile.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

PORTS = range(15_000, 32_000)
"""Below the ports that the kernel gives to clients, which would take them, too."""
TRIES = 10_000


def free_ports(count: int) -> tuple[int, ...]:
    """Returns ports that nobody listens on and no other process was given. Raises RuntimeError if there are too few."""
    return tuple(free_port() for _ in range(count))


def free_port() -> int:
    """Returns one such port."""
    for _ in range(TRIES):
        port = secrets.choice(PORTS)
        if port not in _given() and _hold(port) and not _is_taken(port):
            _given().add(port)
            return port
    raise RuntimeError(f"no free port from {PORTS.start} to {PORTS.stop - 1} in {TRIES} tries: end processes that listen there")


def _hold(port: int) -> bool:
    """Lock the byte of this number in a file that all processes of the user share. The lock ends with the process."""
    with suppress(BlockingIOError):
        fcntl.lockf(_holds(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        return True
    return False


def _is_taken(port: int) -> bool:
    with socket.socket() as holder:
        try:
            holder.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


@cache
def _given() -> set[int]:
    return set()


@cache
def _holds() -> BinaryIO:
    """The file is opened once: closing it anywhere in a process ends all locks of that process."""
    path = Path(tempfile.gettempdir()) / f"herdkeeper-ports-{os.getuid()}"
    path.touch()
    return path.open("r+b")
