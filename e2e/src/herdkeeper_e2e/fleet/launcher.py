"""Starts the operator's own program where no DNS knows the pods' host names: `python -m herdkeeper_e2e.fleet.launcher run`."""

from __future__ import annotations

import socket
from typing import Any

from herdkeeper_e2e.fleet.addresses import address_of_host


def main() -> None:
    """Host names of played pods get their addresses; nothing else of the process is another one."""
    ask_dns = socket.getaddrinfo

    def getaddrinfo(host: Any, *arguments: Any, **options: Any) -> Any:
        known = address_of_host(host) if isinstance(host, str) else None
        return ask_dns(known or host, *arguments, **options)

    socket.getaddrinfo = getaddrinfo
    from herdkeeper.cli import main as run_operator

    run_operator()


if __name__ == "__main__":
    main()
