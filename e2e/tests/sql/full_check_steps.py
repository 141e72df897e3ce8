"""The full check of a tablespace, as its status tells of it."""

from __future__ import annotations

from conftest import Stack, say
from sql_steps import answer_to, processes

from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

CHECKED = Limit(240, 1)


def full_check(stack: Stack) -> Object:
    return dict(stack.sql.get("tablespace", stack.tablespace)["status"].get("fullCheck") or {})


def next_check(stack: Stack, before: Object) -> Object:
    """The full check that follows another one, once it is over and every follower has answered; prints what it found and cost."""

    def over() -> Object | Pending:
        found = full_check(stack)
        if found.get("startedAt") in (None, before.get("startedAt")):
            return Pending(f"no other check has begun; {found.get('schedule', {}).get('waitsFor', 'it waits for nothing')}")
        assert "error" not in found, found
        silent = [each["node"] for each in found.get("replicas", []) if each["verdict"] == "NotAnswered"]
        return Pending(f"{', '.join(silent) or 'the leader'} is not done") if silent or "completedAt" not in found else found

    found = wait_for("a full check", over, CHECKED, say)
    verdicts = ", ".join(f"{each['node']} {each['verdict']} {each.get('differentTables', '')}".strip() for each in found["replicas"])
    stopped = f"writes stopped for {found['writesStoppedSeconds']} s in all, {found['longestWritesStoppedSeconds']} s in one piece"
    say(f"{found['startedAt']} to {found['completedAt']}: {len(found['tables'])} tables, {stopped}; {verdicts}")
    return found


def check_on_request(stack: Stack, written: str) -> Object:
    """The full check that a person asks for, once every follower is judged."""
    before = full_check(stack)
    answer = answer_to(stack, "full-check", "now")
    assert answer.startswith("done: "), answer
    found = next_check(stack, before)
    every_follower_is_judged(stack, found, written)
    return found


def every_follower_is_judged(stack: Stack, found: Object, written: str) -> None:
    """None differs, and every table was checked, also the one that is written to meanwhile."""
    leader = str(found["leader"])
    assert [each["node"] for each in found["replicas"]] == sorted(set(processes(stack)) - {leader})
    assert {each["verdict"] for each in found["replicas"]} == {"Passed"}, found
    assert written in [table["name"] for table in found["tables"]]
    assert not found.get("notChecked")
