"""`kubectl herdkeeper switchover`: another SQL node leads a tablespace."""

from __future__ import annotations

from herdkeeper.plugin.command import FINE, Answer, Argument, BadInputError, Call, Command
from herdkeeper.plugin.kinds import SQL_NODE, TABLESPACE
from herdkeeper.plugin.lookup import find, listed
from herdkeeper.plugin.request import Awaited, Outcome, Request, ask, awaited, waiting
from herdkeeper.plugin.stack_tree import condition
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json


def run(call: Call) -> Answer:
    """Asks for another leader; with `--wait` until that one leads and the Tablespace is Ready."""
    name, node = call.given.tablespace, call.given.node
    tablespace = find(call.cluster, TABLESPACE, name, "TABLESPACE")
    check_node(tablespace, node)
    if leads(tablespace, node):
        return Answer(f"Tablespace/{name}: {node} leads already", {"changes": [], "outcome": f"{node} leads already"})
    request = Request(names.SWITCHOVER_ANNOTATION, node, names.SWITCHOVER_ANSWER_ANNOTATION)
    answer = ask(call, TABLESPACE, name, request, f"{node} is asked to lead")
    if answer.exit_code != FINE or not call.given.wait or call.given.dry_run:
        return answer
    return awaited(call, answer, Awaited(TABLESPACE, name, lambda item: serving(item, node)))


def check_node(tablespace: Json, node: str) -> None:
    """BadInputError when the node has no copy: it names those that have one."""
    copies = [str(replica["node"]) for replica in (tablespace.get("status") or {}).get("replicas") or []]
    if node not in copies:
        there = f"copies are on {listed(copies)}" if copies else "no SQL node has a copy yet"
        raise BadInputError(f"NODE {node}: it has no copy of the Tablespace {tablespace['metadata']['name']}; {there}")


def leads(tablespace: Json, node: str) -> bool:
    """Whether the status says that the node leads."""
    return bool((tablespace.get("status") or {}).get("leader") == node)


def serving(tablespace: Json, node: str) -> Outcome | None:
    """That the node leads a Tablespace that is Ready; None while it does not."""
    ready = condition(tablespace, "Ready")
    serves = leads(tablespace, node) and ready is not None and ready["status"] == "True"
    return Outcome(f"{node} leads, and the Tablespace is Ready", good=True) if serves else None


COMMAND = Command(
    "switchover",
    "lets another SQL node lead a tablespace, once",
    run,
    (
        Argument("tablespace", "a Tablespace", kind=TABLESPACE),
        Argument("node", "a SQL node with a copy that is settled and caught up, e.g. db-herddb-1", kind=SQL_NODE),
        *waiting("120"),
    ),
    description="Writes stand still for a fraction of a second. Open transactions are aborted.",
    writes=True,
)
