"""`kubectl herdkeeper full-check`: compares all rows of the leader with each follower's, now."""

from __future__ import annotations

from herdkeeper.plugin.command import Answer, Argument, Call, Command, find
from herdkeeper.plugin.kinds import TABLESPACE
from herdkeeper.plugin.request import Awaited, Outcome, Request, ask, awaited, waiting
from herdkeeper.shared import names
from herdkeeper.shared.counted import counted
from herdkeeper.shared.objects import Json

REQUEST = Request(names.FULL_CHECK_ANNOTATION, "now", names.FULL_CHECK_ANSWER_ANNOTATION)


def run(call: Call) -> Answer:
    """Request a check; with `--wait`, wait until each follower has finished it."""
    name = call.given.tablespace
    before = (find(call.cluster, TABLESPACE, name, "TABLESPACE").get("status") or {}).get("fullCheck") or {}
    answer = ask(call, TABLESPACE, name, REQUEST, "a full check was requested")
    begun = before.get("startedAt")
    return awaited(call, answer, Awaited(TABLESPACE, name, lambda item: verdict(item, begun)))


def verdict(tablespace: Json, earlier: str | None) -> Outcome | None:
    """Returns the result of a check other than the earlier one. None while a follower has not finished it."""
    check = (tablespace.get("status") or {}).get("fullCheck") or {}
    if check.get("startedAt") in (None, earlier):
        return None
    if check.get("error"):
        return Outcome(f"it ended early: {check['error']}", good=False)
    replicas = check.get("replicas") or []
    failed = [f"{each['node']} in {', '.join(each.get('differentTables') or [])}" for each in replicas if each["verdict"] == "Failed"]
    if failed:
        return Outcome(f"other rows than the leader {check['leader']}: {'; '.join(failed)}", good=False)
    if not check.get("completedAt") or not replicas or any(each["verdict"] != "Passed" for each in replicas):
        return None
    unread = [f"{table['name']} ({table['why']})" for table in check.get("notChecked") or []]
    nodes = ", ".join(str(each["node"]) for each in replicas)
    tables = len(check.get("tables") or [])
    said = f"{nodes} had the leader's rows of {counted(tables, 'table')}"
    return Outcome(f"{said}; not checked: {', '.join(unread)}" if unread else said, good=not unread)


COMMAND = Command(
    "full-check",
    "compares all rows of a tablespace's leader with each follower's, now",
    run,
    (Argument("tablespace", "a Tablespace", kind=TABLESPACE), *waiting("900")),
    description="Writes pause several times for a short while (`spec.fullCheck.maxWritesStoppedMilliseconds`).",
    writes=True,
)
