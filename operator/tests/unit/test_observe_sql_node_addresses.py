"""SQL nodes are asked at the address of their pod: after a restart DNS may still give the one before."""

from __future__ import annotations

import pytest
from situations import objects, pods
from test_plan_herddb import CLUSTER, PODS

from herdkeeper.domain.sql_nodes import names_of
from herdkeeper.observe.herddb import read_nodes
from herdkeeper.observe.world import World


class Answering:
    """Remembers who was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get(self, url: str) -> list[object]:
        self.asked.append(url)
        return []


def at(address):
    (pod,) = pods([PODS[0]]).values()
    return objects({("Pod", PODS[0]): {**pod, "status": {**pod["status"], **({"podIP": address} if address else {})}}})


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("fd00::7", "[fd00::7]"),
        (None, names_of(CLUSTER).host_of(PODS[0])),
        ("", names_of(CLUSTER).host_of(PODS[0])),
    ],
)
def test_a_node_is_asked_at_its_pod_s_address_and_by_its_name_while_there_is_none(address, host):
    answering = Answering()
    assert read_nodes(CLUSTER, at(address), World(None, None, answering)) == {PODS[0]: ()}
    assert answering.asked == [f"http://{host}:9845/tablespaces"]
