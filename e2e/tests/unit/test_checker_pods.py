"""How the checker parts a pod from others, and which driver its JDBC clients have."""

from __future__ import annotations

import re

from herdkeeper_e2e.checker.partition import script
from herdkeeper_e2e.cluster import REPOSITORY


def test_a_partition_drops_both_ways_in_a_chain_of_its_own_and_begins_with_its_last_rule():
    assert script("10.0.0.1", ["10.0.0.2", "10.0.0.3"]).split(" && ") == [
        "iptables -w -N HERDKEEPER-FAULT",
        "iptables -w -A HERDKEEPER-FAULT -s 10.0.0.1 -d 10.0.0.2 -j DROP",
        "iptables -w -A HERDKEEPER-FAULT -s 10.0.0.2 -d 10.0.0.1 -j DROP",
        "iptables -w -A HERDKEEPER-FAULT -s 10.0.0.1 -d 10.0.0.3 -j DROP",
        "iptables -w -A HERDKEEPER-FAULT -s 10.0.0.3 -d 10.0.0.1 -j DROP",
        "iptables -w -I FORWARD -j HERDKEEPER-FAULT",
    ]


def test_the_driver_has_the_version_of_the_servers_whose_jars_it_uses():
    versions = {
        re.findall("<herddb.version>(.*)</herddb.version>", (REPOSITORY / path).read_text())[0]
        for path in ("e2e/jdbc/pom.xml", "images/herddb/pom.xml")
    }
    assert len(versions) == 1
