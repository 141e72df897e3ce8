"""ZooKeeper's port of a played member, behind which is the one real ZooKeeper of the benchmark."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import cast

from herdkeeper_e2e.fleet.listening import Listening
from herdkeeper_e2e.fleet.zookeeper_frames import ConfigRewriter


@dataclass
class Member:
    """What a member's connections have in common. Until it `speaks` it takes connections and bytes, and passes nothing on."""

    listening: Listening
    zookeeper: str
    config: bytes
    speaks: asyncio.Event
    connections: set[ZooKeeperProxy] = field(default_factory=set)

    def pass_on(self) -> None:
        for connection in list(self.connections):
            connection.pass_on()


class ZooKeeperProxy(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._rewriter = ConfigRewriter(member.config)
        self._requests: list[bytes] = []
        self._answers: list[bytes] = []
        self._over = False
        self._server: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there: ZooKeeper gets a connection, too."""
        self._client = cast(asyncio.Transport, transport)
        self._member.listening.connections.add(self._client)
        self._member.connections.add(self)
        self._opening = asyncio.create_task(self._open())

    def data_received(self, data: bytes) -> None:
        self._rewriter.from_client(data)
        self._requests.append(data)
        self.pass_on()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._member.listening.connections.discard(self._client)
        self._member.connections.discard(self)
        self._over = True
        if self._server is not None:
            self._server.abort()

    def answered(self, data: bytes) -> None:
        self._answers.append(data)
        self.pass_on()

    def ended(self) -> None:
        """ZooKeeper ended the connection."""
        self._over = True
        self.pass_on()

    def pass_on(self) -> None:
        """What has come, unless the member is silent."""
        if not self._member.speaks.is_set():
            return
        if self._server is not None:
            self._server.writelines(self._requests)
            self._requests.clear()
        for data in self._answers:
            self._client.write(self._rewriter.from_server(data))
        self._answers.clear()
        if self._over:
            self._client.abort()

    async def _open(self) -> None:
        host, _, port = self._member.zookeeper.partition(":")
        self._server, _ = await asyncio.get_running_loop().create_connection(lambda: _Server(self), host, int(port))
        if self._over:
            self._server.abort()
        self.pass_on()


class _Server(asyncio.Protocol):
    def __init__(self, proxy: ZooKeeperProxy) -> None:
        self._proxy = proxy

    def data_received(self, data: bytes) -> None:
        self._proxy.answered(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._proxy.ended()
