"""What each storage scenario ends with: the reader's proof, and an audit that finds nothing."""

from __future__ import annotations

import json

import yaml
from conftest import Stack, say

from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.history import Gap, gap_table
from herdkeeper_e2e.jobs import wait_until_succeeded
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.writer_process import WriterProcess


def lost_nothing(writer: WriterProcess) -> None:
    """Every acknowledged row is there and no other one; prints the gaps."""
    writer.stop()
    found = writer.read()
    say("\n" + gap_table([Gap(**gap) for gap in found["gaps"]]))
    assert found["violation"] is None


def found_nothing(stack: Stack, name: str) -> Object:
    """The status of an audit of every copy of every entry of the quickstart."""
    return found_nothing_in(stack, "bk", name)


def found_nothing_in(stack: Stack, bookies: str, name: str) -> Object:
    """The same of the BookKeeperCluster `bookies`."""
    audit = yaml.safe_load((REPOSITORY / "examples/audit.yaml").read_text())
    audit["metadata"]["name"] = name
    audit["spec"]["bookKeeperRef"] = {"name": bookies}
    stack.kubectl.apply(json.dumps(audit))
    status: Object = wait_until_succeeded(stack.kubectl, "replicationaudit", name, say)["status"]
    assert (status["findingsTotal"], status.get("findings", [])) == (0, [])
    return status
