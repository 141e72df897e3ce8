"""Who is connected to whom, from a process's point of view (/proc/net/tcp and tcp6 of Linux). Pure."""

from __future__ import annotations

from ipaddress import IPv4Address

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_ESTABLISHED = "01"


def is_connected(tables: str, port: int, client: str) -> bool:
    """Whether a client (an IPv4 address) has a connection to a local port, by the text of both tables.

    Addresses are hexadecimal, each four bytes from the last to the first; an IPv4 address in the table of IPv6 stands at the end.
    """
    wanted = f"{int.from_bytes(IPv4Address(client).packed, 'little'):08X}"
    rows = (line.split() for line in tables.splitlines())
    found = (row for row in rows if len(row) > 3 and row[3] == _ESTABLISHED)
    return any(row[1].endswith(f":{port:04X}") and row[2].partition(":")[0].endswith(wanted) for row in found)
