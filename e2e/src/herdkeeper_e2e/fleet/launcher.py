"""Starts the operator's own program where no DNS knows the pods' host names: `python -m herdkeeper_e2e.fleet.launcher run`."""

from __future__ import annotations

import os
import socket
from types import ModuleType
from typing import Any

from herdkeeper_e2e.fleet.addresses import address_of_host

PATIENCE = "FLEET_PATIENCE_SECONDS"
"""Variable: for so long the operator takes no server's silence for a loss, nor loses its Lease. Without it, as in a cluster."""


def main() -> None:
    """Host names of played pods get their addresses; nothing else of the process is another one, but for its patience."""
    ask_dns = socket.getaddrinfo

    def getaddrinfo(host: Any, *arguments: Any, **options: Any) -> Any:
        known = address_of_host(host) if isinstance(host, str) else None
        return ask_dns(known or host, *arguments, **options)

    socket.getaddrinfo = getaddrinfo
    if PATIENCE in os.environ:
        be_patient(float(os.environ[PATIENCE]))
    from herdkeeper.cli import main as run_operator

    run_operator()


def be_patient(seconds: float) -> None:
    """A process that stands still on a busy machine is silent, and whoever stood still itself finds all others silent."""
    from herdkeeper.clients import http, zookeeper, zookeeper_member
    from herdkeeper.herddb.state import nodes
    from herdkeeper.process import lease, node_streams

    set_constants(http, ANSWER_SECONDS=seconds)
    set_constants(zookeeper, ANSWER_SECONDS=seconds, CONNECT_SECONDS=seconds)
    set_constants(zookeeper_member, ANSWER_SECONDS=seconds, SESSION_SECONDS=3 * seconds)  # a heartbeat is awaited for a third of it
    set_constants(nodes, _SILENT_SECONDS=seconds)
    set_constants(node_streams, SILENCE_SECONDS=seconds)
    set_constants(lease, RENEW_DEADLINE_SECONDS=seconds, DURATION_SECONDS=1.5 * seconds)


def set_constants(module: ModuleType, **values: float) -> None:
    """Give constants of a module other values. Raises AttributeError for one that it lacks: a renamed one would be set in vain."""
    if missing := values.keys() - vars(module).keys():
        raise AttributeError(f"{module.__name__} has no {', '.join(sorted(missing))}")
    vars(module).update(values)


if __name__ == "__main__":
    main()
