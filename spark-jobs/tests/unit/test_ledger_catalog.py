"""The metadata reader on a played ZooKeeper: it finds every ledger and nothing else, and names its errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kazoo.exceptions import ConnectionLoss, NoAuthError, NoNodeError

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.layout import LedgerLayout, ledger_path
from herdkeeper_jobs.bookkeeper.metadata import (
    ClusterNotFoundError,
    LedgerCatalog,
    MetadataUnavailableError,
    UndecodableMetadata,
    VersionedMetadata,
    identify,
)

ROOT = "/shop/orders/ledgers"
METADATA = b"BookieMetadataFormatVersion\t1\n1\n1\n0\n0\tb0\n"
FACTORY = "org.apache.bookkeeper.meta.{}LedgerManagerFactory"


@dataclass
class Answer:
    """The result of kazoo's asynchronous calls."""

    zookeeper: PlayedZooKeeper
    value: Any

    def get(self, timeout: float) -> Any:
        self.zookeeper.in_flight -= 1
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


@dataclass
class PlayedZooKeeper:
    """A tree of znodes; reads of `broken` lose the connection, those of `forbidden` are refused."""

    nodes: dict[str, bytes] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    forbidden: set[str] = field(default_factory=set)
    in_flight: int = 0
    most_in_flight: int = 0

    def get_async(self, path: str) -> Answer:
        return self._answer(path, lambda: (self.nodes[path], SimpleNamespace(version=5, ctime=1_790_000_000_000)))

    def get_children_async(self, path: str) -> Answer:
        prefix = path + "/"
        return self._answer(path, lambda: list({node[len(prefix) :].split("/")[0] for node in self.nodes if node.startswith(prefix)}))

    def _answer(self, path: str, value: Any) -> Answer:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        if path in self.broken:
            return Answer(self, ConnectionLoss())
        if path in self.forbidden:
            return Answer(self, NoAuthError())
        known = any(node == path or node.startswith(path + "/") for node in self.nodes)
        return Answer(self, value() if known else NoNodeError())


def cluster(layout: LedgerLayout, ledger_ids: Iterable[int]) -> PlayedZooKeeper:
    nodes = {
        f"{ROOT}/LAYOUT": f"2\n{FACTORY.format(layout.value)}:1".encode(),
        f"{ROOT}/INSTANCEID": b"8d850b8c",
        f"{ROOT}/available/b0": bytes.fromhex("32230a06626f6f6b6965108cb5011a093132372e302e302e31220a626f6f6b69652d727063"),
        f"{ROOT}/available/readonly/10.0.0.7:3181": b"",
        f"{ROOT}/cookies/b0": b"",
        f"{ROOT}/idgen/ID-0000000001": b"",
        f"{ROOT}/underreplication/ledgers/0000/0000/0000/0001/urL0000000001": b"",
    }
    return PlayedZooKeeper(nodes | {ROOT + ledger_path(layout, ledger_id): METADATA for ledger_id in ledger_ids})


def catalog_of(zookeeper: PlayedZooKeeper) -> LedgerCatalog:
    return identify(zookeeper, ROOT)  # type: ignore[arg-type]


@given(st.sampled_from(LedgerLayout), st.sets(st.integers(0, 2**31 - 2) | st.integers(0, 20_000), max_size=30))
def test_every_ledger_of_every_layout_is_found_and_nothing_else(layout: LedgerLayout, ledger_ids: set[int]) -> None:
    assert catalog_of(cluster(layout, ledger_ids)).ledger_ids() == sorted(ledger_ids)


def test_ledgers_beyond_31_bits_are_found_beside_the_short_ones() -> None:
    ids = [5, 2**31 - 2, 2**31 - 1, 2**40]
    assert catalog_of(cluster(LedgerLayout.HIERARCHICAL, ids)).ledger_ids() == ids


def test_metadata_comes_with_its_version_in_the_order_asked_and_without_the_ledgers_that_are_gone() -> None:
    zookeeper = cluster(LedgerLayout.HIERARCHICAL, range(300))
    zookeeper.nodes[ROOT + "/00/0000/L0007"] = b"rubbish"
    catalog = catalog_of(zookeeper)
    read = list(catalog.read_many([9, 1000, 7, 3]))
    assert [one.metadata.ledger_id for one in read if isinstance(one, VersionedMetadata)] == [9, 3]
    assert [one.znode_version for one in read if isinstance(one, VersionedMetadata)] == [5, 5]
    assert isinstance(read[1], UndecodableMetadata)
    assert read[1].ledger_id == 7
    assert catalog.read_ledger_metadata(1000) is None


def test_the_number_of_requests_in_flight_is_bounded() -> None:
    zookeeper = cluster(LedgerLayout.HIERARCHICAL, range(1000))
    assert len(list(catalog_of(zookeeper).read_many(range(1000)))) == 1000
    assert zookeeper.most_in_flight <= 64


def test_writable_and_read_only_bookies_have_addresses() -> None:
    addresses = catalog_of(cluster(LedgerLayout.HIERARCHICAL, [])).bookie_addresses()
    assert addresses == {"b0": BookieAddress("127.0.0.1", 23180), "10.0.0.7:3181": BookieAddress("10.0.0.7", 3181)}


def test_a_lost_connection_is_unavailable_and_never_an_empty_answer() -> None:
    zookeeper = cluster(LedgerLayout.HIERARCHICAL, [1, 20_000])
    zookeeper.broken.add(f"{ROOT}/00/0002")
    with pytest.raises(MetadataUnavailableError, match="ConnectionLoss"):
        catalog_of(zookeeper).ledger_ids()


def test_a_znode_that_may_not_be_read_is_named_and_not_asked_for_again() -> None:
    zookeeper = cluster(LedgerLayout.HIERARCHICAL, [1, 20_000])
    zookeeper.forbidden.add(f"{ROOT}/00/0002")
    with pytest.raises(ClusterNotFoundError, match=f"{ROOT}/00/0002"):
        catalog_of(zookeeper).ledger_ids()


def test_a_root_without_a_cluster_is_refused_with_the_root() -> None:
    with pytest.raises(ClusterNotFoundError, match="ledgers root '/shop/orders/ledgers': no LAYOUT and INSTANCEID there"):
        catalog_of(PlayedZooKeeper())
