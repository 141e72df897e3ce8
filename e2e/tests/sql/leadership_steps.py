"""Who leads, as HerdDB's own record says, which the operator's status follows; and what is done to an operator and to a leader."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from conftest import Stack, say

from herdkeeper_e2e import cluster
from herdkeeper_e2e.conditions import pod_problem
from herdkeeper_e2e.sql_stack import TABLESPACE
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

OPERATOR = Limit(180, 0.5)
"""Its pod goes, or comes and gets the Lease."""


@dataclass(frozen=True)
class Record:
    """The tablespace's record. `version` is raised by each change of it; the times are seconds, `changed_at` since 1970."""

    leader: str
    version: int
    changed_at: float
    unchanged_seconds: float


def record_of(stack: Stack) -> Record:
    """As it is in ZooKeeper now."""
    found = stack.tools.fact("tablespace_record")
    return Record(str(found["leader"]), int(found["version"]), float(found["changedAt"]), float(found["unchangedSeconds"]))


def led_by(stack: Stack, node: str, limit: Limit) -> Record:
    """The record, once it names this leader."""

    def ask() -> Record | Pending:
        found = record_of(stack)
        return found if found.leader == node else Pending(f"{found.leader} leads")

    return wait_for(f"{node} to lead", ask, limit, say)


def same_leadership(before: Record, after: Record) -> bool:
    """Whether nobody has changed the record in between, not even back and forth."""
    return (before.leader, before.version) == (after.leader, after.version)


@contextmanager
def operator_away(stack: Stack) -> Iterator[None]:
    """No operator runs while the block does; one serves again afterwards."""
    operator = stack.kubectl.in_namespace(cluster.OPERATOR_NAMESPACE)

    def scaled(replicas: int) -> None:
        operator.run("scale", "deployment", cluster.RELEASE, f"--replicas={replicas}")

    def gone() -> bool | Pending:
        left = [str(pod["metadata"]["name"]) for pod in stack.sql.operator_pods()]
        return Pending(f"{', '.join(left)} is still there") if left else True

    def serves() -> bool | Pending:
        pods = stack.sql.operator_pods()
        problems = [problem for pod in pods if (problem := pod_problem(pod)) is not None]
        return Pending("; ".join(problems) or "there is no pod") if problems or not pods else True

    scaled(0)
    try:
        wait_for("the operator's end", gone, OPERATOR, say)
        yield
    finally:
        scaled(1)
        wait_for("the operator's return", serves, OPERATOR, say)


def moves(stack: Stack) -> list[str]:
    """What the operator's events say of the moves of this tablespace's leadership, the latest last. Equal ones are counted as one."""
    events = [event for event in stack.kubectl.list("events") if event.get("reason") == "LeaderMoved"]
    told = [event for event in events if f"tablespace {TABLESPACE}: led by " in str(event.get("message"))]
    return [str(event["message"]) for event in sorted(told, key=lambda event: str(event["lastTimestamp"]))]
