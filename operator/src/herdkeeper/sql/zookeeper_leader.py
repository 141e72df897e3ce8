"""Finds a tablespace's leader in ZooKeeper, which names the node that *should* lead; the node itself decides when it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from herdkeeper.codecs.herddb.node import decode_node, node_path
from herdkeeper.codecs.herddb.tablespace import decode_tablespace, tablespace_path
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.sql.connection import Address
from herdkeeper.sql.encryption import Encryption
from herdkeeper.sql.errors import LeaderNotFound

_ANSWER_SECONDS = 10.0
"""While kazoo has no connection, a request without a limit waits until it has one again."""


def _as_advertised(address: Address) -> Address:
    return address


@dataclass(frozen=True)
class LeaderFinder:
    """Looks leaders up in ZooKeeper.

    `zookeeper` is a started client; `resolve` turns a node's advertised address (a pod's DNS name) into one that this process can reach,
    e.g. a forwarded port.

    With `authorities` (certificates, PEM), only nodes that serve TLS are accepted, and are verified. Without, TLS is used with nodes whose
    record has it, unverified.
    """

    zookeeper: KazooClient
    herd_root: str
    resolve: Callable[[Address], Address] = _as_advertised
    authorities: str | None = None

    def leader(self, tablespace: str) -> Address:
        """Returns the address of the node that ZooKeeper names as leader. Raises LeaderNotFound if there is none, it is not registered or
        serves no TLS although that is required, or ZooKeeper does not answer.
        """
        try:
            return self._named_leader(tablespace)
        except (KazooException, KazooTimeoutError, MalformedDataError) as error:
            raise LeaderNotFound(f"ZooKeeper does not report the leader of {tablespace!r}: {str(error) or type(error).__name__}") from error

    def _named_leader(self, tablespace: str) -> Address:
        path = tablespace_path(self.herd_root, tablespace)
        try:
            record = decode_tablespace(self._content(path))
        except NoNodeError as error:
            raise LeaderNotFound(f"no tablespace {tablespace!r}: ZooKeeper has no node {path}") from error
        path = node_path(self.herd_root, record.leader)
        try:
            node = decode_node(self._content(path))
        except NoNodeError as error:
            raise LeaderNotFound(f"the leader {record.leader!r} of {tablespace!r} is not registered: no node {path}") from error
        if self.authorities is not None and not node.tls:
            raise LeaderNotFound(
                f"the leader {record.leader!r} of {tablespace!r} does not serve TLS, but verification is required: its node {path}"
            )
        encryption = Encryption(node.host, self.authorities) if node.tls else None
        return replace(self.resolve(Address(node.host, node.port)), encryption=encryption)

    def _content(self, path: str) -> bytes:
        content: bytes = self.zookeeper.get_async(path).get(timeout=_ANSWER_SECONDS)[0]
        return content
