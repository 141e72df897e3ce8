"""What each storage scenario ends with: the reader's proof, and an audit that finds nothing."""

from __future__ import annotations

import json

import yaml
from conftest import Stack, say
from load import Load

from herdkeeper_e2e.client_report import ClientReport
from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.history import Gap, gap_table
from herdkeeper_e2e.jobs import wait_until_succeeded
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.ledger_clients import LedgerClient
from herdkeeper_e2e.writer_process import WriterProcess

STRIPED = frozenset({"TooFewRacks"})
"""Bookies of three zones have no ring of four or five in which neighbours are always parted."""


def lost_nothing(writer: WriterProcess) -> None:
    """Every acknowledged row is there and no other one; prints the gaps."""
    writer.stop()
    found = writer.read()
    say("\n" + gap_table([Gap(**gap) for gap in found["gaps"]]))
    assert found["violation"] is None


def both_lost_nothing(load: Load) -> None:
    """The same of the striped ledgers beside the writer, too, by the reader that followed them and by one that came at the end."""
    lost_nothing(load.writer)
    kept_all(load.striped)


def kept_all(client: LedgerClient) -> ClientReport:
    """Both readers of a client of the bookies got every acknowledged entry, right and in order; prints the gaps."""
    report = client.proof()
    say(f"{report}")
    assert report.violation is None
    return report


def found_nothing(stack: Stack, name: str) -> Object:
    """The status of an audit of every copy of every entry of the quickstart."""
    return found_nothing_in(stack, "bk", name)


def found_no_copy_missing(stack: Stack, name: str) -> None:
    """The same where striped ledgers are among them: in two racks at least only as far as a ring of the bookies' zones allows."""
    status = _audited(stack, "bk", name, "Report")
    assert [finding for finding in status.get("findings", []) if finding["kind"] not in STRIPED] == []


def found_nothing_in(stack: Stack, bookies: str, name: str) -> Object:
    """The same of the BookKeeperCluster `bookies`."""
    status = _audited(stack, bookies, name, "Report")
    assert (status["findingsTotal"], status.get("findings", [])) == (0, [])
    return status


def made_whole(stack: Stack, name: str, but: frozenset[str] = frozenset()) -> None:
    """Has the entries copied that lack one copy, and audits again. Findings of the kinds `but` may stay.

    An entry is acknowledged by Aq = 2 of its Wq = 3 bookies. What was under way to the third when that one stopped stays without a third
    copy: BookKeeper replaces a bookie in its ledger from the first entry on that was not acknowledged. A repair works on closed ledgers, so
    a leader change closes the one that is written.
    """
    stack.sql.switch_over(stack.sql.other())
    repaired = _audited(stack, "bk", f"{name}-repaired", "Repair")
    say(f"{repaired['findingsTotal']} findings, {repaired.get('replicasRepaired', 0)} copies written")
    found = [finding for finding in repaired.get("findings", []) if finding["kind"] not in but]
    assert {(each["kind"], each["severity"], each["repair"]) for each in found} <= {("Missing", "UnderReplicated", "Repaired")}
    left = _audited(stack, "bk", name, "Report")
    # the most urgent ones are told first
    assert [finding for finding in left.get("findings", []) if finding["kind"] not in but] == []


def _audited(stack: Stack, bookies: str, name: str, repair: str) -> Object:
    audit = yaml.safe_load((REPOSITORY / "examples/audit.yaml").read_text())
    audit["metadata"]["name"] = name
    audit["spec"] |= {"bookKeeperRef": {"name": bookies}, "repair": repair}
    stack.kubectl.apply(json.dumps(audit))
    status: Object = wait_until_succeeded(stack.kubectl, "replicationaudit", name, say)["status"]
    return status
