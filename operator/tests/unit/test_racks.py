"""Where bookies stand: read off their nodes, kept while they are away, and told to BookKeeper's clients by a script."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from situations import objects, quickstart, with_spec

from herdkeeper.bookkeeper.build.racks import SCRIPT, build_racks, placement_lines
from herdkeeper.bookkeeper.state.racks import Rack, format_racks, parse_racks, placement_of, racks_of
from herdkeeper.shared.node import Node
from herdkeeper.shared.unknown import Unknown

CLUSTER = quickstart("BookKeeperCluster")
HOSTS = [f"bk-bookie-{number}-0.bk-bookie.demo.svc" for number in range(3)]


def zoned(name: str, zone: str | None = "zone-a", region: str | None = "north") -> Node:
    labels = {"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": region, "example.org/row": "row-7"}
    return Node(name, {key: value for key, value in labels.items() if value})


def bookie(number: int, node: str | None):
    stateful_set = {"metadata": {"name": f"bk-bookie-{number}", "labels": {"herdkeeper.io/bookie": str(number)}}}
    pod = {"metadata": {"name": f"bk-bookie-{number}-0"}, "spec": {"nodeName": node}}
    found = {("StatefulSet", f"bk-bookie-{number}"): stateful_set}
    return found if node is None else {**found, ("Pod", f"bk-bookie-{number}-0"): pod}


@pytest.mark.parametrize(
    ("situation", "node", "expected"),
    [
        ("its node's zone", zoned("n"), Rack("zone-a", "north")),
        ("its node, where nodes carry no zone", zoned("n", zone=None), Rack("n", "north")),
        ("no region, where nodes carry none", zoned("n", region=None), Rack("zone-a", None)),
        ("what the map had, while its node can't be read", Unknown("refused"), Rack("zone-old", "south")),
        ("what the map had, once its node is gone", None, Rack("zone-old", "south")),
    ],
)
def test_a_bookie_stands_in(situation, node, expected):
    stored = {("ConfigMap", "bk-racks"): build_racks(CLUSTER, {HOSTS[0]: Rack("zone-old", "south")})}
    assert racks_of(CLUSTER, objects(stored, bookie(0, "n")), {"n": node}) == {HOSTS[0]: expected}, situation


def test_a_bookie_stands_where_its_pod_is_whatever_somebody_wrote_into_its_label():
    found = bookie(0, "n")
    found["StatefulSet", "bk-bookie-0"]["metadata"]["labels"] = {"herdkeeper.io/bookie": "first"}
    assert racks_of(CLUSTER, objects(found), {"n": zoned("n")}) == {HOSTS[0]: Rack("zone-a", "north")}


def test_a_bookie_that_was_never_placed_has_no_rack():
    assert racks_of(CLUSTER, objects(bookie(0, None)), {}) == {}


def test_a_bookie_without_a_stateful_set_leaves_the_map():
    stored = {("ConfigMap", "bk-racks"): build_racks(CLUSTER, {host: Rack("zone-a", None) for host in HOSTS})}
    assert list(racks_of(CLUSTER, objects(stored, bookie(1, None)), {})) == [HOSTS[1]]


def test_another_label_may_name_the_rack():
    cluster = with_spec(CLUSTER, placement=CLUSTER.spec.placement.model_copy(update={"rack_label": "example.org/row"}))
    assert racks_of(cluster, objects(bookie(0, "n")), {"n": zoned("n")}) == {HOSTS[0]: Rack("row-7", "north")}


@pytest.mark.parametrize(
    ("situation", "racks", "policy", "locations"),
    [
        ("one region", (Rack("a", "north"), Rack("b", "north")), "Rackaware", ["/a", "/b"]),
        ("regions unknown", (Rack("a", None), Rack("b", None)), "Rackaware", ["/a", "/b"]),
        ("several regions", (Rack("a", "north"), Rack("b", "south")), "RegionAware", ["/north/a", "/south/b"]),
        (
            "one without a region beside several",
            (Rack("a", "north"), Rack("b", "south"), Rack("c", None)),
            "RegionAware",
            ["/north/a", "/south/b", "/default-region/c"],
        ),
    ],
)
def test_all_locations_are_equally_deep_and_the_policy_reads_them(situation, racks, policy, locations):
    found = dict(zip(HOSTS, racks, strict=False))
    assert [line.split()[1] for line in format_racks(found).splitlines()] == locations, situation
    assert parse_racks(format_racks(found)) == found
    chosen = placement_lines(placement_of(CLUSTER, found))["ensemblePlacementPolicy"]
    assert chosen == f"org.apache.bookkeeper.client.{policy}EnsemblePlacementPolicy"


class Mounted:
    """The mounted ConfigMap, and a `getent` that knows two addresses."""

    def __init__(self, folder: Path) -> None:
        racks = {HOSTS[0]: Rack("zone-a", None), HOSTS[1]: Rack("zone-b", None)}
        for name, text in {"racks": format_racks(racks), "rack.sh": SCRIPT}.items():
            (folder / name).write_text(text)
        (folder / "rack.sh").chmod(0o755)
        records = {"10.0.0.1": f"10.0.0.1  {HOSTS[0]}.cluster.local", "10.0.0.2": f"10.0.0.2  {HOSTS[1]}.cluster.local"}
        records["10.0.0.9"] = "10.0.0.9  db-herddb-0.db-herddb-nodes.demo.svc.cluster.local"
        cases = "".join(f"  {address}) echo '{text}';;\n" for address, text in records.items())
        getent = folder / "bin/getent"
        getent.parent.mkdir()
        getent.write_text(f'#!/bin/sh\ncase "$2" in\n{cases}  *) exit 2;;\nesac\n')
        getent.chmod(0o755)
        self.script, self.path = str(folder / "rack.sh"), f"{getent.parent}:{os.environ['PATH']}"

    def ask(self, *addresses: str) -> tuple[int, list[str]]:
        command = [self.script, *addresses]
        answer = subprocess.run(command, env={"PATH": self.path}, capture_output=True, text=True, check=False)
        return answer.returncode, answer.stdout.split()


@pytest.fixture
def mounted(tmp_path: Path) -> Mounted:
    return Mounted(tmp_path)


def test_the_script_answers_for_each_address(mounted):
    assert mounted.ask("10.0.0.2", "10.0.0.1") == (0, ["/zone-b", "/zone-a"])


def test_the_script_succeeds_without_addresses_since_bookkeeper_tries_it_so(mounted):
    assert mounted.ask() == (0, [])


@pytest.mark.parametrize("address", ["10.0.0.9", "10.0.0.10"], ids=["no bookie's", "no pod's"])
def test_the_script_fails_for_an_address_without_a_rack_since_an_answer_would_be_remembered(mounted, address):
    assert mounted.ask(address)[0] != 0
