"""ZooKeeper's membership: the servers of an ensemble, and the voters.

The znode `/zookeeper/config` and the dynamic configuration files hold lines `server.<id>=<host>:<quorum port>:<election
port>:<role>;<client address>`, where the client address is a port or `host:port`. In the znode, a last line `version=<hex>` follows. A file
has its version in its name, `zoo.cfg.dynamic.<hex>`; ZooKeeper refuses one with it inside. The version is the zxid of the change, so it
grows. Source: QuorumPeerConfig, QuorumPeer.QuorumServer and QuorumMaj of ZooKeeper 3.9.5.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from herdkeeper.codecs.java_data import MalformedDataError

CONFIG_PATH = "/zookeeper/config"
"""The znode of the committed membership. Only reconfig writes it."""

_FIRST = "zoo.cfg.dynamic"
_SERVER = re.compile(r"server\.([0-9]{1,19})\s*=\s*([^;\s]+?)(?::(participant|observer))?;(\S+)")
_VERSION = re.compile(r"version\s*=\s*([0-9a-f]+)")


class Role(StrEnum):
    """Role of a server in a membership."""

    PARTICIPANT = "participant"
    OBSERVER = "observer"


@dataclass(frozen=True)
class Server:
    """One server of an ensemble. `address` is `host:quorum port:election port`, `client` a port or `host:port`."""

    server_id: int
    address: str
    role: Role
    client: str

    @property
    def line(self) -> str:
        """The line in a file, and in a reconfig request."""
        return f"server.{self.server_id}={self.address}:{self.role.value};{self.client}"


@dataclass(frozen=True)
class Membership:
    """A committed membership. `version` is 0 for that of a new ensemble."""

    version: int
    servers: tuple[Server, ...]

    @property
    def voters(self) -> frozenset[int]:
        return frozenset(server.server_id for server in self.servers if server.role is Role.PARTICIPANT)

    @property
    def observers(self) -> frozenset[int]:
        """Ids of the servers without a vote."""
        return frozenset(server.server_id for server in self.servers if server.role is Role.OBSERVER)

    @property
    def file(self) -> str:
        """The content of a dynamic configuration file."""
        return "".join(f"{server.line}\n" for server in sorted(self.servers, key=lambda server: server.server_id))


def decode_membership(data: bytes) -> Membership:
    """Decode `/zookeeper/config`. Raises MalformedDataError, also for a quorum of groups and weights, which the operator never makes."""
    servers: list[Server] = []
    version: int | None = None
    for line in data.decode("utf-8", errors="replace").split("\n"):
        text = line.strip()
        if found := _SERVER.fullmatch(text):
            servers.append(Server(int(found[1]), found[2], Role(found[3] or Role.PARTICIPANT), found[4]))
        elif found := _VERSION.fullmatch(text):
            version = int(found[1], 16)
        elif text:
            raise MalformedDataError(f"membership line {text[:200]!r}: expected server.<id>=host:port:port:role;client or version=<hex>")
    if version is None or not servers:
        raise MalformedDataError(f"membership {data[:200]!r}: expected at least one server and a version")
    return Membership(version, tuple(servers))


def file_name(version: int) -> str:
    """Returns the name of a dynamic configuration file, from which ZooKeeper reads the version."""
    return f"{_FIRST}.{version:x}" if version else _FIRST


def version_of(name: str) -> int | None:
    """Returns the version in a file's name; None for other files, and for that of a new ensemble."""
    found = re.fullmatch(re.escape(_FIRST) + r"\.([0-9a-f]+)", name)
    return int(found[1], 16) if found else None
