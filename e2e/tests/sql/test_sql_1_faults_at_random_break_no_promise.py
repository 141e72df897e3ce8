"""For twenty minutes clients write and read SQL, over the project's wire client and over JDBC, while faults are drawn at random: what the
tables hold at the end does not contradict what the clients were told."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path

from conftest import Stack, say

from herdkeeper_e2e.checker import workload_plan
from herdkeeper_e2e.checker.contents import Contents, parse_contents
from herdkeeper_e2e.checker.history import parse_history
from herdkeeper_e2e.checker.jdbc_pod import JdbcPod
from herdkeeper_e2e.checker.nemesis import Nemesis
from herdkeeper_e2e.checker.nemesis_plan import Action, steps
from herdkeeper_e2e.checker.operation import Operation
from herdkeeper_e2e.checker.recorder import Recorder
from herdkeeper_e2e.checker.verdict import judge
from herdkeeper_e2e.sql_stack import TABLESPACE, SqlStack
from herdkeeper_e2e.steered_process import SteeredProcess

HISTORY = "/tmp/history.jsonl"


def python_clients(stack: Stack) -> SteeredProcess:
    share = workload_plan.PYTHON
    stack.tools.run("checker.tables", "--registers", str(workload_plan.REGISTERS))
    numbers = {"adders": share.adders, "first-client": share.first_client, "register": share.register, "readers": share.readers}
    arguments = [word for name, number in numbers.items() for word in (f"--{name}", str(number))]
    program = stack.tools.program("checker.workload", "--history", HISTORY, *arguments, "--pause-seconds", str(share.pause_seconds))
    return SteeredProcess(stack.kubectl, stack.tools.name, program)


def contents_of_each_copy(stack: Stack, sql: SqlStack) -> list[Contents]:
    """As the present leader tells them, then as each other copy does once it leads."""
    found = []
    for node in sorted(sql.replicas(), key=lambda replica: replica != sql.leader()):
        if node != sql.leader():
            sql.switch_over(node)
        found.append(parse_contents(stack.tools.run("checker.contents_reader").splitlines()))
    return found


def keep_histories(stack: Stack, pods: list[str], folder: Path) -> None:
    for pod in pods:
        (folder / f"history-of-{pod}.jsonl").write_text(stack.kubectl.exec(pod, "cat", HISTORY))


def histories(folder: Path) -> list[Operation]:
    return parse_history(line for file in sorted(folder.glob("history-of-*.jsonl")) for line in file.read_text().splitlines())


def test_no_acknowledged_write_is_lost_no_transaction_torn_no_read_goes_back(stack: Stack, tmp_path: Path) -> None:
    seed = int(os.environ.get("SEED") or secrets.randbelow(1_000_000))
    minutes = float(os.environ.get("MINUTES") or 20)
    actions = [Action(name.strip()) for name in os.environ.get("ACTIONS", "").split(",") if name.strip()] or tuple(Action)
    say(f"seed {seed}, {minutes:g} minutes, histories in {tmp_path}")
    sql = stack.sql
    jdbc = JdbcPod(stack.kubectl, "jdbc", str(sql.get("tablespace", TABLESPACE)["status"]["connectionSecret"]))
    jdbc.start()
    clients = [python_clients(stack), jdbc.work(workload_plan.JDBC, HISTORY)]

    with (tmp_path / "history-of-nemesis.jsonl").open("w") as file:
        nemesis = Nemesis(sql, clients, Recorder(file))
        try:
            nemesis.begin()
            end = time.monotonic() + minutes * 60
            drawn = steps(seed, actions)
            while time.monotonic() < end:
                nemesis.perform(next(drawn))
        finally:
            nemesis.finish()
            for each in clients:
                each.stop()
            keep_histories(stack, [stack.tools.name, jdbc.name], tmp_path)

    contents = contents_of_each_copy(stack, sql)
    (tmp_path / "contents.jsonl").write_text("\n".join(line for each in contents for line in each.to_lines()))
    verdict = judge(histories(tmp_path), contents)
    say(f"\n{verdict.text()}\nseed {seed}: {'broken' if verdict.violations else 'passed'}")
    assert verdict.violations == ()
    for client in ("python", "jdbc"):
        assert verdict.acknowledged("add", client) > 0
        assert verdict.acknowledged("read", client) > 0
    stack.wait_until_ready()
