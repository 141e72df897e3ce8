"""What the scenarios of the SQL stack do to it, and how they know that it is settled again."""

from __future__ import annotations

from conftest import Stack, say
from under_load import lost_nothing, uids

from herdkeeper_e2e.conditions import unsettled_reason
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

CHANGE = Limit(900, 1)
ANSWERED = Limit(240, 1)


def processes(stack: Stack) -> dict[str, str]:
    """The SQL nodes' pods, and which ones they are."""
    return uids(stack, "app.kubernetes.io/name=herddb")


def settled_on(stack: Stack, nodes: list[str]) -> None:
    """Until exactly these nodes are there, each with a settled copy, and nothing is left to do."""

    def ask() -> bool | Pending:
        for kind, name in (("herddbcluster", "db"), ("tablespace", stack.tablespace)):
            if (unsettled := unsettled_reason(stack.sql.get(kind, name))) is not None:
                return Pending(f"{kind}: {unsettled}")
        there = list(processes(stack))
        copies = sorted(stack.sql.replicas())
        return True if there == nodes == copies else Pending(f"nodes {there}, copies {copies}")

    wait_for(f"SQL nodes {nodes}", ask, CHANGE, say)


def each_copy_has_every_row(stack: Stack, writer: WriterProcess) -> None:
    """As the reader finds them on one leader after the other, the last of which stays; prints the gaps."""
    lost_nothing(writer)
    for node in sorted(stack.sql.replicas()):
        if node != stack.sql.leader():
            stack.wait_until_ready()  # who led before must follow first
            stack.sql.switch_over(node)
            assert writer.read()["violation"] is None, node
    stack.wait_until_ready()


def answer_to(stack: Stack, request: str, wish: str) -> str:
    """What becomes of a request by annotation, such as `switchover` or `full-check`: once it is answered, it does not exist any more."""
    asked = f"herdkeeper.io/{request}"
    stack.kubectl.run("annotate", "tablespace", stack.tablespace, f"{asked}={wish}", "--overwrite")

    def answer() -> str | Pending:
        annotations = stack.sql.get("tablespace", stack.tablespace)["metadata"]["annotations"]
        return Pending(f"{request} is not answered") if asked in annotations else str(annotations[f"{asked}-answer"])

    return wait_for(f"an answer to {request}", answer, ANSWERED, say)


def connection_of(stack: Stack) -> Object:
    """What the connection Secret tells a client."""
    return stack.kubectl.secret(stack.sql.get("tablespace", stack.tablespace)["status"]["connectionSecret"])
