"""`kubectl herdkeeper switchover`: makes another SQL node the leader of a tablespace."""

from __future__ import annotations

from dataclasses import replace

from herdkeeper.plugin.command import FINE, WRONG, Answer, Argument, BadInputError, Call, Command, find, listed
from herdkeeper.plugin.kinds import SQL_NODE, TABLESPACE
from herdkeeper.plugin.request import Awaited, Outcome, Request, ask, awaited, waiting
from herdkeeper.plugin.stack_tree import condition
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json


def run(call: Call) -> Answer:
    """Request another leader; with `--wait`, wait until it leads and the Tablespace is Ready."""
    name, node = call.given.tablespace, call.given.node
    tablespace = find(call.cluster, TABLESPACE, name, "TABLESPACE")
    check_node(tablespace, node)
    if leads(tablespace, node):
        return _leads_already(call, tablespace, node)
    request = Request(names.SWITCHOVER_ANNOTATION, node, names.SWITCHOVER_ANSWER_ANNOTATION)
    answer = ask(call, TABLESPACE, name, request, f"a switchover to {node} was requested")
    return awaited(call, answer, Awaited(TABLESPACE, name, lambda item: serving(item, node)))


def _leads_already(call: Call, tablespace: Json, node: str) -> Answer:
    """Requests nothing. The status also names a leader that is down, or has not booted yet."""
    name = str(tablespace["metadata"]["name"])
    if serving(tablespace, node) is not None:
        return Answer(f"Tablespace/{name}: {node} already leads", {"changes": [], "outcome": f"{node} leads already"})
    said = f"{node} is the leader already, but the Tablespace is not Ready; see `status`"
    answer = Answer(f"Tablespace/{name}: {said}", {"changes": [], "outcome": said}, WRONG)
    if not call.given.wait or call.given.dry_run:
        return answer
    return awaited(call, replace(answer, exit_code=FINE), Awaited(TABLESPACE, name, lambda item: serving(item, node)))


def check_node(tablespace: Json, node: str) -> None:
    """Raises BadInputError, naming the replicas, if the node has none."""
    copies = [str(replica["node"]) for replica in (tablespace.get("status") or {}).get("replicas") or []]
    if node not in copies:
        there = f"replicas are on {listed(copies)}" if copies else "no SQL node has a replica yet"
        raise BadInputError(f"NODE {node}: it has no replica of the Tablespace {tablespace['metadata']['name']}; {there}")


def leads(tablespace: Json, node: str) -> bool:
    """Returns whether the node leads, by the status."""
    return bool((tablespace.get("status") or {}).get("leader") == node)


def serving(tablespace: Json, node: str) -> Outcome | None:
    """Returns the outcome once the node leads a Ready Tablespace, or None."""
    ready = condition(tablespace, "Ready")
    serves = leads(tablespace, node) and ready is not None and ready["status"] == "True"
    return Outcome(f"{node} leads, and the Tablespace is Ready", good=True) if serves else None


COMMAND = Command(
    "switchover",
    "makes another SQL node the leader of a tablespace, once",
    run,
    (
        Argument("tablespace", "a Tablespace", kind=TABLESPACE),
        Argument("node", "a SQL node with a settled replica that has caught up, e.g. db-herddb-1", kind=SQL_NODE),
        *waiting("120"),
    ),
    description="Writes pause for about a second. Open transactions are aborted.",
    writes=True,
)
