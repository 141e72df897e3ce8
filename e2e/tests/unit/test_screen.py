"""The last screen tells what does not hold as plainly as what does."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from herdkeeper_e2e.screen import Shown, screen


def resource(kind: str, name: str, reason: str = "", **status) -> dict:
    ready = {"type": "Ready", "status": "False" if reason else "True", "reason": "Because", "message": reason, "observedGeneration": 1}
    return {"kind": kind, "metadata": {"name": name, "generation": 1}, "status": {"conditions": [ready], "message": reason, **status}}


def pod(name: str, kind: str, owner: str) -> dict:
    return {
        "metadata": {"name": name, "labels": {"herdkeeper.io/owner-kind": kind, "herdkeeper.io/owner-name": owner}},
        "spec": {"nodeName": "worker"},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def shown(zookeeper_reason: str = "") -> Shown:
    finding = {"kind": "Missing", "severity": "Critical", "ledgerId": 7, "firstEntry": 20, "lastEntry": 24, "bookieId": "bk-bookie-3-x"}
    return Shown(
        namespace="demo",
        resources=(
            resource("ZooKeeperCluster", "zk", zookeeper_reason, leader="zk-zookeeper-1"),
            resource("BookKeeperCluster", "bk", bookies=[{"number": 0, "state": "ReadOnly"}]),
            resource("HerdDBCluster", "db", sqlAddress="db-herddb:7000", jdbcUrl="jdbc:herddb:x", credentialsSecret="secret-of-db"),
            resource("Tablespace", "flights", tablespaceName="flights", replicas=[{"role": "leader", "node": "db-herddb-0"}]),
        ),
        pods=(pod("zk-zookeeper-1", "ZooKeeperCluster", "zk"), pod("bk-bookie-0-0", "BookKeeperCluster", "bk")),
        checkpoint=resource(
            "Checkpoint", "flights-1", tables=[{"name": "airlines", "rows": 15}], lsn={"ledgerId": 1, "entryId": 42}, bytes=2**20
        ),
        audit=resource("ReplicationAudit", "bk-1", ledgers=2, entries=10, replicas=30, findingsTotal=1, findings=[finding]),
        rows={"airlines": 16, "planes": 3322},
    )


def text(given: Shown) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(screen(given))
    return console.file.getvalue()


def line_with(words: str, given: Shown) -> str:
    return next(line for line in text(given).splitlines() if words in line)


def test_a_table_is_marked_as_equal_only_when_the_checkpoint_has_as_many_rows():
    assert "✘" in line_with("airlines", shown())
    equal = replace(shown(), rows={"airlines": 15})
    assert "✔" in line_with("airlines", equal)
    missing = line_with("planes", shown())
    assert "none" in missing
    assert "✘" in missing


def test_a_resource_that_is_not_ready_is_marked_with_its_reason_even_when_that_looks_like_markup():
    assert "✔" in line_with("ZooKeeperCluster/zk", shown())
    line = line_with("ZooKeeperCluster/zk", shown("members [zk-0] are [/] away"))
    assert "✘" in line
    assert "Because: members [zk-0] are [/] away" in line


def test_the_tree_is_that_of_kubectl_herdkeeper_status():
    lines = [line.rstrip() for line in text(shown()).splitlines()[:4]]
    assert lines == [
        "namespace demo",
        "├── ✔ ZooKeeperCluster/zk",
        "│   └── ✔ zk-zookeeper-1  worker, leader",
        "├── ✔ BookKeeperCluster/bk",
    ]


def test_each_finding_is_named_with_ledger_entries_and_bookie():
    assert "Critical Missing: ledger 7 entries 20..24 on bk-bookie-3-x" in text(shown())
    assert "findings: 1" in text(shown())


def test_it_tells_where_the_checkpoint_ends_and_how_to_connect():
    assert "LSN ledger 1, entry 42; 1.0 MiB" in text(shown())
    for expected in ("jdbc:herddb:x", "Secret secret-of-db", "kubectl -n demo get herdkeeper", "make demo-clean"):
        assert expected in text(shown())
