"""The servers' admin ports: documents by URL instead of processes that answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from herdkeeper.clients.bounded_http import Trust
from herdkeeper.clients.http import JsonReader
from herdkeeper.herddb.execute.node_orders import NodeOrders
from herdkeeper.shared import names
from herdkeeper.shared.names import HerdDBNames, ZooKeeperNames
from herdkeeper.shared.unknown import NotListening, Unknown


@dataclass
class PlayedNodes(JsonReader, NodeOrders):
    """A URL without a document does not answer. `written` is called after each order that was done.

    Documents and orders have `http` URLs, also those of nodes that speak TLS."""

    documents: dict[str, Any] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    orders: list[str] = field(default_factory=list)
    written: Callable[[str], None] = lambda _: None

    def get(self, url: str, trust: Trust | None = None) -> Any | Unknown:
        return self.documents.get(_in_plain_text(url, trust), Unknown(f"{url} did not answer"))

    def zookeeper_serves(self, named: ZooKeeperNames, modes: tuple[str, ...]) -> None:
        """Each member says of itself what `modes` gives for its number, e.g. `leader`, and that it has every transaction."""
        for number, mode in enumerate(modes):
            url = f"http://{named.host(number)}:{names.ZOOKEEPER_ADMIN_PORT}/commands/srvr"
            self.documents[url] = {"server_stats": {"server_state": mode, "last_processed_zxid": 0x100000001}}

    def herddb_holds(self, named: HerdDBNames, tablespace: str, uuid: str, roles: tuple[str, ...]) -> None:
        """Each SQL node says that it holds a settled copy in the role that `roles` gives for its number."""
        for number, role in enumerate(roles):
            url = f"http://{named.host(number)}:{names.HERDDB_HTTP_PORT}/tablespaces"
            lsn = {"ledgerId": 7, "entryId": 9}
            self.documents[url] = [
                {
                    "name": tablespace,
                    "uuid": uuid,
                    "role": role,
                    "ready": True,
                    "applied": lsn,
                    "checkpoint": lsn,
                    "recoverable": True,
                    "fullCheck": None,
                }
            ]

    def herddb_tells(self, named: HerdDBNames, number: int, **fields: Any) -> None:
        """A SQL node says something else than before of the tablespace that it holds."""
        (copy,) = self.documents[f"http://{named.host(number)}:{names.HERDDB_HTTP_PORT}/tablespaces"]
        copy.update(fields)

    def herddb_is_gone(self, named: HerdDBNames, number: int) -> None:
        """Nobody listens at the node's address."""
        url = f"http://{named.host(number)}:{names.HERDDB_HTTP_PORT}/tablespaces"
        self.documents[url] = NotListening(f"{url} refused")

    def post(self, url: str, token: str, timeout_seconds: float, trust: Trust | None = None) -> Any | Unknown:
        """Orders are done when the token is right, and remembered; one that tells whether its copies are
        barred takes that order."""
        url = _in_plain_text(url, trust)
        if token not in self.tokens:
            return Unknown(f"{url} answered 401")
        for copy in self.documents.get(f"{url.partition('/tablespaces')[0]}/tablespaces", []) if "bar?" in url else []:
            if "barred" in copy:
                copy["barred"] = "/bar?" in url
                copy["barredUntil"] = _until(url) if "/bar?" in url else None
        self.orders.append(url)
        self.written(f"order {url}")
        return {}


def _until(url: str) -> dict[str, int]:
    ledger, entry = url.rpartition("&until=")[2].split(",")
    return {"ledgerId": int(ledger), "entryId": int(entry)}


def _in_plain_text(url: str, trust: Trust | None) -> str:
    """A node that speaks TLS is verified by the stack's authority, as the host that the URL names."""
    assert url.startswith("https://") is (trust is not None), url
    if trust is not None:
        assert "BEGIN CERTIFICATE" in trust.authorities, url
        assert f"//{trust.name}:" in url
    return url.replace("https://", "http://")
