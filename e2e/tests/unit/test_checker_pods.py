"""How the checker parts a pod from others, and which driver its JDBC clients have."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from herdkeeper_e2e.checker.partition import CHAINS, removal, script
from herdkeeper_e2e.cluster import REPOSITORY


def test_a_partition_drops_both_ways_in_a_chain_of_its_own_and_begins_with_its_last_rule():
    assert script(3, "10.0.0.1", ["10.0.0.2", "10.0.0.3"]).split(" && ") == [
        "iptables -w -N HERDKEEPER-FAULT-3",
        "iptables -w -A HERDKEEPER-FAULT-3 -s 10.0.0.1 -d 10.0.0.2 -j DROP",
        "iptables -w -A HERDKEEPER-FAULT-3 -s 10.0.0.2 -d 10.0.0.1 -j DROP",
        "iptables -w -A HERDKEEPER-FAULT-3 -s 10.0.0.1 -d 10.0.0.3 -j DROP",
        "iptables -w -A HERDKEEPER-FAULT-3 -s 10.0.0.3 -d 10.0.0.1 -j DROP",
        "iptables -w -I FORWARD -j HERDKEEPER-FAULT-3",
    ]


def test_all_partitions_of_a_machine_and_nothing_else_are_taken_back_by_the_names_of_their_chains(tmp_path: Path):
    done = tmp_path / "done"
    program = tmp_path / "iptables"
    chains = "-P FORWARD ACCEPT\\n-N HERDKEEPER-FAULT-3\\n-N OTHER\\n-N HERDKEEPER-FAULT-12\\n"
    program.write_text(f"""#!/bin/sh\nif [ "$2" = -S ]; then printf -- '{chains}'; else echo "$@" >> {done}; fi\n""")
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", removal(f"$({CHAINS})")], env=environment, check=True)
    assert done.read_text().splitlines() == [
        f"-w {rest.format(f'HERDKEEPER-FAULT-{number}')}" for number in (3, 12) for rest in ("-D FORWARD -j {}", "-F {}", "-X {}")
    ]


def test_the_driver_has_the_version_of_the_servers_whose_jars_it_uses():
    versions = {
        re.findall("<herddb.version>(.*)</herddb.version>", (REPOSITORY / path).read_text())[0]
        for path in ("e2e/jdbc/pom.xml", "images/herddb/pom.xml")
    }
    assert len(versions) == 1
