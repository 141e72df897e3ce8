"""Copies are missing on a bookie, and one is damaged. A light audit names them all, a dry run says what a repair would do and leaves
everything as it is, and both are in the history on a volume: the tables and, of each run, a report for people that needs nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import Stack, goes_in_the_end, say
from own_tablespace import OwnTablespace
from runs import audited, first_ledger, inflicted

from herdkeeper_e2e.drop_entries import Loss
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.tools_pod import CHECKPOINTS
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

NAME = "audited"
ROWS = 60
WRITE_QUORUM = 3
FAULTS = ((0, 4, False), (20, 20, True))
"""First and last entry, and whether they are damaged instead of missing. A light audit reads the first entry of each bookie's share, and
then all of a share of which that one is not good."""
MISSING, DAMAGED = 5, 1
LIGHT, DRY_RUN, LIGHT_AGAIN = "light-after-a-loss", "dry-run", "light-after-a-dry-run"
TABLES = ("audit_runs", "audit_findings", "audit_bookies")
READ_HISTORY = f"""
import json
from pyarrow import parquet
print(json.dumps({{table: parquet.read_table(f"{CHECKPOINTS}/{{table}}").to_pylist() for table in {TABLES}}}, default=str))
"""


@pytest.fixture(scope="module")
def own(request: pytest.FixtureRequest, stack: Stack) -> OwnTablespace:
    """Its first ledger is closed; its volume has the history."""
    goes_in_the_end(request, stack.kubectl, "replicationaudits", "-l", f"scenario={NAME}")
    own = OwnTablespace.made(request, stack, NAME)
    own.write_some_rows("written", ROWS)
    own.switch_over()
    wait_for("the end of its first ledger", lambda: first_ledger(stack, own.tools)["closed"] or Pending("it is open"), Limit(300), say)
    own.wait_until_ready()
    return own


@pytest.fixture(scope="module")
def losses(stack: Stack, own: OwnTablespace) -> list[Loss]:
    """On the first bookie that holds the ledger."""
    losses = inflicted(stack, first_ledger(stack, own.tools), *FAULTS)
    stack.wait_until_ready()
    return losses


def audited_there(own: OwnTablespace, name: str, **spec: object) -> Object:
    """The status of an audit of that ledger, once it has succeeded; it is in the history then."""
    ledgers = [first_ledger(own.stack, own.tools)["ledger"]]
    return audited(own.stack.kubectl, name, None, {"scenario": NAME}, ledgers=ledgers, destination=own.destination, **spec)


def history(own: OwnTablespace) -> dict[str, list[dict[str, Any]]]:
    """The rows of each table, as anybody reads them who mounts the volume."""
    found: dict[str, list[dict[str, Any]]] = json.loads(own.tools.script(READ_HISTORY))
    return found


def run_of(own: OwnTablespace, audit: str) -> str:
    """The id of its run."""
    return str(own.stack.sql.get("replicationaudit", audit)["metadata"]["uid"])


def named(findings: list[Object]) -> list[tuple[str, int, int, int, str]]:
    """What is told of copies, however it is urgent and whatever becomes of it."""
    return [(each["kind"], each["ledgerId"], each["firstEntry"], each["lastEntry"], each["bookieId"]) for each in findings]


def require_findings(status: Object, losses: list[Loss], bookie_id: str) -> None:
    """Each loss is named exactly, and every other copy is good."""
    kinds = {True: "CorruptDigest", False: "Missing"}
    expected = [(kinds[loss.damaged], loss.ledger, loss.first, loss.last, bookie_id) for loss in losses]
    assert sorted(named(status["findings"])) == sorted(expected)
    assert {each["severity"] for each in status["findings"]} == {"UnderReplicated"}
    good = status["replicas"] + status.get("replicasUnread", 0)
    assert good + MISSING + DAMAGED == WRITE_QUORUM * status["entries"]


def test_a_light_audit_names_what_is_lost_and_a_dry_run_says_what_would_be_done_and_does_nothing(
    own: OwnTablespace, losses: list[Loss]
) -> None:
    before = first_ledger(own.stack, own.tools)
    light = audited_there(own, LIGHT, depth="Light")
    require_findings(light, losses, before["bookies"][0])

    dry_run = audited_there(own, DRY_RUN, repair="DryRun")
    require_findings(dry_run, losses, before["bookies"][0])
    assert {each["repair"] for each in dry_run["findings"]} == {"WouldRepair"}, dry_run["findings"]
    details = {each["kind"]: each["repairDetail"] for each in dry_run["findings"]}
    assert details["Missing"] == f"{MISSING} entries would be written, 0 were whole already"
    assert details["CorruptDigest"].startswith(f"{DAMAGED} damaged entries: {dry_run['entries']} entries of the ledger on ")
    assert details["CorruptDigest"].endswith(" would be copied elsewhere")
    assert (dry_run["replicasRepairable"], dry_run.get("replicasRepaired", 0)) == (MISSING + DAMAGED, 0)
    assert f"a repair would write {MISSING + DAMAGED} copies" in dry_run["message"]

    again = audited_there(own, LIGHT_AGAIN, depth="Light")
    require_findings(again, losses, before["bookies"][0])
    assert first_ledger(own.stack, own.tools) == before, "its metadata has another version"


def test_the_history_has_each_run_with_its_findings_and_a_report_of_it(own: OwnTablespace, losses: list[Loss]) -> None:
    runs = {name: run_of(own, name) for name in (LIGHT, DRY_RUN, LIGHT_AGAIN)}
    tables = history(own)
    told = sorted(tables["audit_runs"], key=lambda run: str(run["finished_at"]))
    assert [run["run_id"] for run in told] == list(runs.values())
    assert [(run["depth"], run["copies_repairable"]) for run in told] == [("Light", 0), ("Deep", MISSING + DAMAGED), ("Light", 0)]
    assert {(run["under_replicated"], run["copies_repaired"]) for run in told} == {(len(losses), 0)}
    for run_id in runs.values():
        found = [finding for finding in tables["audit_findings"] if finding["run_id"] == run_id]
        assert sorted((each["first_entry_id"], each["last_entry_id"]) for each in found) == [fault[:2] for fault in FAULTS]
        bookies = [bookie for bookie in tables["audit_bookies"] if bookie["run_id"] == run_id]
        assert sum(bookie["copies_missing"] for bookie in bookies) == MISSING
        assert sum(bookie["copies_damaged"] for bookie in bookies) == DAMAGED

    for name, run_id in runs.items():
        report = own.stack.sql.get("replicationaudit", name)["status"]["report"]
        assert report == f"audit_reports/{run_id}.html"
        page = own.stack.kubectl.exec(own.tools.name, "cat", f"{CHECKPOINTS}/{report}")
        assert page.startswith("<!DOCTYPE html>")
        assert "<svg" in page
        assert f"run {run_id}" in page
        assert f"Findings: {len(losses)} under-replicated" in page
        assert "://" not in page, "it asks for something else"
