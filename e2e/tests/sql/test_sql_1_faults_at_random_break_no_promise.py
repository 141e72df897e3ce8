"""For twenty minutes clients write and read SQL, over the project's wire client and over JDBC, while faults of SQL nodes, bookies and
ZooKeeper members are drawn at random, several at once. In each of two tablespaces on the same nodes, one client says what HerdDB refuses.
What the tables hold at the end does not contradict what the clients were told, and leader, followers and log have the same rows."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import yaml
from conftest import Stack, say
from driver_steps import contents
from full_check_steps import check_on_request
from runs import status_of
from sql_steps import settled_on

from herdkeeper_e2e.checker import workload_plan
from herdkeeper_e2e.checker.contents import Contents
from herdkeeper_e2e.checker.history import parse_history
from herdkeeper_e2e.checker.jdbc_pod import JdbcPod
from herdkeeper_e2e.checker.nemesis import Nemesis
from herdkeeper_e2e.checker.nemesis_plan import ACTIONS, action_of, bursts
from herdkeeper_e2e.checker.operation import Operation
from herdkeeper_e2e.checker.recorder import Recorder
from herdkeeper_e2e.checker.verdict import judge
from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.kubectl import resource
from herdkeeper_e2e.sql_stack import TABLESPACE
from herdkeeper_e2e.steered_process import SteeredProcess
from herdkeeper_e2e.tools_pod import Database, ToolsPod

OTHER = "other"
"""The second tablespace; only a refused client uses it."""
HISTORY, PROMISES, SAID = "/tmp/history.jsonl", "/tmp/promises.json", "/tmp/said.txt"


def another_tablespace(stack: Stack) -> Stack:
    """On the same SQL nodes and bookies, with a log and a leader of its own."""
    stack.kubectl.apply(resource("Tablespace", OTHER, herdDBRef={"name": "db"}, replicas=2))
    stack.wait_until_ready()
    tools = ToolsPod(stack.kubectl, f"tools-{OTHER}", Database.of(stack.kubectl, "db", "bk", OTHER)).start()
    return Stack(stack.kubectl, tools, OTHER)


def python_clients(stack: Stack) -> SteeredProcess:
    share = workload_plan.PYTHON
    stack.tools.run("checker.tables", "--registers", str(workload_plan.REGISTERS))
    numbers = {"adders": share.adders, "first-client": share.first_client, "register": share.register, "readers": share.readers}
    arguments = [word for name, number in numbers.items() for word in (f"--{name}", str(number))]
    return stack.tools.steered("checker.workload", "--history", HISTORY, *arguments, "--pause-seconds", str(share.pause_seconds))


def refused_client(stack: Stack, seed: int) -> SteeredProcess:
    return stack.tools.steered("checker.refusals", "tell", "--promises", PROMISES, "--said", SAID, "--seed", str(seed))


def led_by_each_copy(stack: Stack) -> Iterator[None]:
    """By the present leader first."""
    sql = stack.sql
    for node in sorted(sql.replicas(), key=lambda replica: replica != sql.leader()):
        if node != sql.leader():
            sql.switch_over(node)
        yield


def contradictions_of(stack: Stack) -> list[str]:
    """What contradicts the promises to a tablespace's refused client, as its leader tells it."""
    return [str(json.loads(line)) for line in stack.tools.run("checker.refusals", "judge", "--promises", PROMISES).splitlines()]


def contents_of_each_copy(stack: Stack) -> tuple[list[Contents], list[str]]:
    """As the present leader tells them, then as each other copy does once it leads, with what contradicts the promises to the refused
    client there. Each leader's rows are compared with its followers', and one follower's with the log."""
    found, contradictions = [], []
    for _ in led_by_each_copy(stack):
        found.append(contents(stack))
        contradictions += contradictions_of(stack)
        leader_and_followers_are_alike(stack, "checker_set")
    log_and_follower_are_alike(stack)
    return found, contradictions


def contradictions_of_each_copy(other: Stack) -> list[str]:
    """The same of the tablespace that only a refused client uses."""
    found = []
    for _ in led_by_each_copy(other):
        found += contradictions_of(other)
        leader_and_followers_are_alike(other, "a")
    log_and_follower_are_alike(other)
    return found


def leader_and_followers_are_alike(stack: Stack, written: str) -> None:
    """By a full check of all tables, with the one that was `written` among them."""
    settled_on(stack, sorted(stack.sql.replicas()))
    check_on_request(stack, written)


def log_and_follower_are_alike(stack: Stack) -> None:
    """By a Checkpoint of the whole log, whose job compares each table's digest with a follower's."""
    claim, checkpoint = yaml.safe_load_all((REPOSITORY / "examples/checkpoint.yaml").read_text())
    name = f"{stack.tablespace}-after-the-faults"
    checkpoint["metadata"]["name"] = name
    checkpoint["spec"] |= {"tablespaceRef": {"name": stack.tablespace}, "mode": "Full", "verify": "Follower"}
    stack.kubectl.apply_all([claim, checkpoint])
    status = status_of(stack.kubectl, "checkpoint", name)
    assert status["verified"].startswith("compared with follower"), status


def keep_histories(stack: Stack, pods: list[str], folder: Path) -> None:
    for pod in pods:
        (folder / f"history-of-{pod}.jsonl").write_text(stack.kubectl.exec(pod, "cat", HISTORY))


def histories(folder: Path) -> list[Operation]:
    return parse_history(line for file in sorted(folder.glob("history-of-*.jsonl")) for line in file.read_text().splitlines())


def claims(stack: Stack) -> dict[str, str]:
    """Which volumes there are."""
    return {str(item["metadata"]["name"]): str(item["metadata"]["uid"]) for item in stack.kubectl.list("persistentvolumeclaims")}


def test_no_acknowledged_write_is_lost_no_transaction_torn_no_read_goes_back(stack: Stack, tmp_path: Path) -> None:
    seed = int(os.environ.get("SEED") or secrets.randbelow(1_000_000))
    minutes = float(os.environ.get("MINUTES") or 20)
    actions = [action_of(name.strip()) for name in os.environ.get("ACTIONS", "").split(",") if name.strip()] or ACTIONS
    say(f"seed {seed}, {minutes:g} minutes, histories in {tmp_path}")
    sql, other, volumes = stack.sql, another_tablespace(stack), claims(stack)
    connection = str(sql.get("tablespace", TABLESPACE)["status"]["connectionSecret"])
    jdbc = JdbcPod(stack.kubectl, "jdbc", connection, stack.tools.database.identity).start()
    clients = [python_clients(stack), jdbc.work(workload_plan.JDBC, HISTORY), refused_client(stack, seed), refused_client(other, seed + 1)]

    with (tmp_path / "history-of-nemesis.jsonl").open("w") as file:
        nemesis = Nemesis(sql, clients, Recorder(file))
        try:
            nemesis.begin()
            end = time.monotonic() + minutes * 60
            drawn = bursts(seed, actions)
            while time.monotonic() < end:
                nemesis.perform(next(drawn))
        finally:
            nemesis.finish()
            for each in clients:
                each.stop()
            keep_histories(stack, [stack.tools.name, jdbc.name], tmp_path)
            for where in (stack, other):
                (tmp_path / f"said-in-{where.tablespace}.txt").write_text(where.kubectl.exec(where.tools.name, "cat", SAID))

    copies, contradictions = contents_of_each_copy(stack)
    contradictions += contradictions_of_each_copy(other)
    for where in (stack, other):
        promised = json.loads(where.kubectl.exec(where.tools.name, "cat", PROMISES))
        told, kept, not_there = promised["told"], len(promised["kept"]), len(promised["broken"])
        say(f"refusals in {where.tablespace}: {told}; {kept} rows must be there, {not_there} must not")
        contradictions += promised["violations"]
        assert told["refused"] > 0
    (tmp_path / "contents.jsonl").write_text("\n".join(line for each in copies for line in each.to_lines()))
    verdict = judge(histories(tmp_path), copies)
    broken = verdict.violations or contradictions
    say("\n".join(["", verdict.text(), *contradictions, f"seed {seed}: {'broken' if broken else 'passed'}"]))
    assert verdict.violations == ()
    assert contradictions == []
    for client in ("python", "jdbc"):
        assert verdict.acknowledged("add", client) > 0
        assert verdict.acknowledged("read", client) > 0
    assert volumes.items() <= claims(stack).items(), "no volume was lost, and one was given up"
    stack.wait_until_ready()
