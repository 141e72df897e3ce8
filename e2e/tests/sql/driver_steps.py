"""HerdDB's own driver beside the scenarios' changes, and what it was promised."""

from __future__ import annotations

from collections.abc import Sequence

from conftest import Stack, say

from herdkeeper_e2e.checker.contents import Contents, parse_contents
from herdkeeper_e2e.checker.history import parse_history
from herdkeeper_e2e.checker.jdbc_pod import JdbcPod
from herdkeeper_e2e.checker.verdict import judge


def empty_checker_tables(stack: Stack) -> None:
    """For HerdDB's driver: another scenario may have left its own."""
    stack.tools.run("query", "DROP TABLE IF EXISTS checker_set", "DROP TABLE IF EXISTS checker_register")
    stack.tools.run("checker.tables", "--registers", "2")


def contents(stack: Stack) -> Contents:
    """Of the checker's tables, as the leader tells them."""
    return parse_contents(stack.tools.run("checker.contents_reader").splitlines())


def drivers_lost_nothing(stack: Stack, jdbc: JdbcPod, histories: Sequence[str], found: Sequence[Contents]) -> None:
    """What was acknowledged to HerdDB's driver is in the tables, as each copy told when it led."""
    lines = [line for history in histories for line in stack.kubectl.exec(jdbc.name, "cat", history).splitlines()]
    verdict = judge(parse_history(lines), found)
    say(f"\n{verdict.text()}")
    assert verdict.violations == ()
    assert verdict.acknowledged("add", "jdbc") > 0
