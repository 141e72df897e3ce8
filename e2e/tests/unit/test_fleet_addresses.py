"""Where played pods listen."""

from __future__ import annotations

import pytest

from herdkeeper.shared.names import BookKeeperNames, HerdDBNames, ObjectKey, ZooKeeperNames
from herdkeeper_e2e.fleet.addresses import address_of, address_of_host, namespace_of, namespaces_of_a_run


def _hosts(number: int) -> list[str]:
    namespace = namespace_of(number)
    zk, bk, db = (ObjectKey(namespace, name) for name in ("zk", "bk", "db"))
    members = [ZooKeeperNames(zk).host(each) for each in range(7)]
    return [*members, *(BookKeeperNames(bk).host(each) for each in range(20)), *(HerdDBNames(db).host(each) for each in range(9))]


def test_no_two_servers_of_a_large_fleet_share_an_address_and_all_are_of_this_machine() -> None:
    addresses = [address_of_host(host) or "" for number in (*range(500), *range(62_000, 62_500)) for host in _hosts(number)]
    assert len(set(addresses)) == len(addresses)
    assert all(address.startswith("127.") and address != "127.0.0.1" for address in addresses)
    assert all(0 < int(octet) < 255 for address in addresses for octet in address.split(".")[1:])


def test_a_pod_has_the_address_of_its_host_name() -> None:
    namespace = namespace_of(7)
    assert address_of(namespace, "bk-bookie-3-0") == address_of_host(BookKeeperNames(ObjectKey(namespace, "bk")).host(3))


def test_pods_with_random_names_have_an_address_that_is_no_servers() -> None:
    assert int(address_of(namespace_of(7), "bk-autorecovery-5c7-x2z").rpartition(".")[2]) >= 100


@pytest.mark.parametrize("host", ["localhost", "example.org", "zk-zookeeper.fleet-00001.svc", "a.b.elsewhere.svc", "127.0.0.1"])
def test_other_names_are_left_to_dns(host: str) -> None:
    assert address_of_host(host) is None


def test_a_run_has_as_many_namespaces_as_it_asks_for_each_with_addresses() -> None:
    for count in (1, 250, 1000):
        namespaces = namespaces_of_a_run(count)
        assert len({address_of(namespace, "zk-zookeeper-0") for namespace in namespaces}) == count


def test_a_namespace_that_is_no_stacks_is_named() -> None:
    with pytest.raises(ValueError, match="namespace is 'demo'"):
        address_of("demo", "db-herddb-0")
