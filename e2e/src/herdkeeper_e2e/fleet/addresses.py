"""Where the played pods listen: each has an address of its own in 127.0.0.0/8, by its namespace and name alone.

So the operator's launcher can answer for DNS without asking anybody.
"""

from __future__ import annotations

import re
import secrets
import zlib

_NAMESPACE = re.compile(r"fleet-(\d{5})")
_SERVER = re.compile(r"(zk-zookeeper|bk-bookie|db-herddb)-(\d{1,2})(?:-0)?")
_FIRST = {"zk-zookeeper": 10, "bk-bookie": 30, "db-herddb": 60}
_OTHERS, _MOST_OTHERS = 100, 150
"""Pods with random names, on which nothing listens: two may have the same address."""
_BLOCK, _BLOCKS = 250, 250
"""Stacks in each second octet, and second octets from 1 on."""
SUFFIX = ".svc"


def namespace_of(number: int) -> str:
    """The namespace of a stack, whose number is below _BLOCKS times _BLOCK."""
    return f"fleet-{number:05d}"


def namespaces_of_a_run(count: int) -> list[str]:
    """Namespaces whose addresses another run on this machine has hardly: it draws as well where its own begin."""
    first = _BLOCK * secrets.randbelow(_BLOCKS - count // _BLOCK)
    return [namespace_of(first + number) for number in range(count)]


def address_of(namespace: str, pod: str) -> str:
    """The address of a pod of examples/quickstart.yaml's resources. ValueError for a namespace that is no stack's."""
    found = _NAMESPACE.fullmatch(namespace)
    if found is None:
        raise ValueError(f"namespace is {namespace!r}: expected one that namespace_of() gives")
    number, server = int(found[1]), _SERVER.fullmatch(pod)
    last = _FIRST[server[1]] + int(server[2]) if server else _OTHERS + zlib.crc32(pod.encode()) % _MOST_OTHERS
    return f"127.{1 + number // _BLOCK}.{1 + number % _BLOCK}.{last}"


def address_of_host(host: str) -> str | None:
    """The address behind a pod's host name, `<pod>.<service>.<namespace>.svc`; None for any other name."""
    parts = host.removesuffix(SUFFIX).split(".")
    if not host.endswith(SUFFIX) or len(parts) != 3 or not _NAMESPACE.fullmatch(parts[2]):
        return None
    return address_of(parts[2], parts[0])
