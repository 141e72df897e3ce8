"""A process's connections (/proc/net/tcp and tcp6 of Linux). Pure."""

from __future__ import annotations

from ipaddress import IPv4Address

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_ESTABLISHED = "01"


def is_connected(tables: str, port: int, client: str) -> bool:
    """Returns whether a client (an IPv4 address) is connected to a local port, by the text of both tables.

    Addresses are hexadecimal, each four bytes reversed; an IPv4 address is at the end of an IPv6 one.
    """
    wanted = f"{int.from_bytes(IPv4Address(client).packed, 'little'):08X}"
    rows = (line.split() for line in tables.splitlines())
    found = (row for row in rows if len(row) > 3 and row[3] == _ESTABLISHED)
    return any(row[1].endswith(f":{port:04X}") and row[2].partition(":")[0].endswith(wanted) for row in found)
