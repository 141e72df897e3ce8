"""While a client creates znodes one by one, its ensemble grows from one member to three and to five, and shrinks to three again; the
operator dies at each change, and every acknowledged znode is there at the end.

It has clients of its own only: that the stack stands a growth from three members is told by another scenario.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
import yaml
from conftest import Stack, say
from ensemble_steps import Ensemble

from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.history import Gap, gap_table
from herdkeeper_e2e.steered_process import SteeredProcess

NAME = "from-one"
HISTORY = "/tmp/history-of-znodes"
ZNODES = 50


@pytest.fixture
def ensemble(stack: Stack) -> Iterator[Ensemble]:
    """An ensemble of one member, beside the stack's."""
    manifest = next(yaml.safe_load_all((REPOSITORY / "examples/quickstart.yaml").read_text()))
    manifest["metadata"]["name"] = NAME
    manifest["spec"] |= {"replicas": 1, "deletionPolicy": "Delete"}
    stack.kubectl.apply(json.dumps(manifest))
    found = Ensemble(stack.kubectl, NAME)
    found.settled_on(1)
    yield found
    stack.kubectl.run("delete", "zookeepercluster", NAME, "--timeout=120s", timeout_seconds=130)


def changed(stack: Stack, ensemble: Ensemble, writer: SteeredProcess, before: int, after: int) -> None:
    """The operator dies when it has begun, and again after the first step."""
    what = f"{before} become {after}"
    writer.order(f"mark {what}")
    began = time.monotonic()
    ensemble.want(replicas=after)
    if after > before:
        ensemble.waits_for("Joining")
    stack.sql.kill_operator()
    ensemble.takes_a_step(before)
    stack.sql.kill_operator()
    ensemble.settled_on(after)
    ensemble.has_pods(after)
    say(f"{what} in {time.monotonic() - began:.0f} s")
    writer.acknowledges(ZNODES)


def test_one_member_becomes_three_and_five_and_three_under_load(stack: Stack, ensemble: Ensemble) -> None:
    first = ensemble.seen()["status"]["address"]
    command = stack.tools.program("znode_writer", "--hosts", first, "--history", HISTORY)
    writer = SteeredProcess(stack.kubectl, stack.tools.name, command)
    writer.acknowledges(ZNODES)
    for before, after in ((1, 3), (3, 5), (5, 3)):
        changed(stack, ensemble, writer, before, after)
    assert ensemble.marks() == ["true"] * 3  # deletionPolicy Delete: the volumes of members that left go
    writer.stop()

    # through any of the members: the address has them all by now, and the first alone would hide that one lacks something
    address = ensemble.seen()["status"]["address"]
    assert len(address.split(",")) == 3
    for host in address.split(","):
        found = json.loads(stack.tools.run("znode_reader", "--hosts", host, "--history", HISTORY))
        assert found["violation"] is None, host
    say(f"{found['verdict']['acknowledged']} znodes acknowledged, {found['verdict']['unknown']} answers lost")
    say("\n" + gap_table([Gap(**gap) for gap in found["gaps"]]))
    assert len(found["gaps"]) == 3
