"""`kubectl herdkeeper run-now`: makes a schedule start a run at once."""

from __future__ import annotations

from dataclasses import replace

from herdkeeper.plugin.cluster import Cluster
from herdkeeper.plugin.command import Answer, Argument, BadInputError, Call, Command, find_any, listed
from herdkeeper.plugin.kinds import AUDIT, CHECKPOINT, SCHEDULED_AUDIT, SCHEDULED_CHECKPOINT, Kind
from herdkeeper.plugin.request import Awaited, Request, ask, awaited, waiting
from herdkeeper.plugin.runs import end_of
from herdkeeper.shared import names

REQUEST = Request(names.RUN_NOW_ANNOTATION, "yes", names.RUN_NOW_ANSWER_ANNOTATION)
RUNS = {SCHEDULED_CHECKPOINT: CHECKPOINT, SCHEDULED_AUDIT: AUDIT}
"""What a schedule of each kind makes."""
KINDS = tuple(RUNS)


def run(call: Call) -> Answer:
    """Request a run; with `--wait`, wait until it has ended. Findings of an audit are not a success."""
    kind, name = schedule_of(call.cluster, call.given.schedule)
    answer = ask(call, kind, name, REQUEST, "a run was requested")
    prefix, _, made = str(answer.document.get("outcome", "")).partition("done: ")
    if prefix or not made:
        return answer  # no run was made, or nobody waits for it
    return awaited(call, replace(answer, document={**answer.document, "run": made}), Awaited(RUNS[kind], made, end_of))


def schedule_of(cluster: Cluster, written: str) -> tuple[Kind, str]:
    """Returns the schedule given as NAME or KIND/NAME. Raises BadInputError if there is none, or one of each kind."""
    if "/" in written:
        kind, item = find_any(cluster, written, "SCHEDULE", KINDS)
        if kind not in KINDS:
            raise BadInputError(f"SCHEDULE {written}: a {kind.name} is not a schedule; name a {KINDS[0].name} or {KINDS[1].name}")
        return kind, str(item["metadata"]["name"])
    there = [(kind, str(item["metadata"]["name"])) for kind in KINDS for item in cluster.list(kind)]
    found = [each for each in there if each[1] == written]
    if len(found) == 1:
        return found[0]
    if found:
        raise BadInputError(f"SCHEDULE {written}: there are two; write {' or '.join(f'{kind.name}/{name}' for kind, name in found)}")
    known = f"there are {listed([name for _, name in there])}" if there else "there is none at all"
    raise BadInputError(f"SCHEDULE {written}: there is no schedule of that name in the namespace {cluster.namespace}; {known}")


COMMAND = Command(
    "run-now",
    "makes a schedule of Checkpoints or ReplicationAudits start a run at once, even while it is suspended",
    run,
    (
        Argument(
            "schedule", "a ScheduledCheckpoint or ScheduledReplicationAudit, as NAME or KIND/NAME", kind=SCHEDULED_CHECKPOINT, kinds=KINDS
        ),
        *waiting("3600"),
    ),
    description="With `--wait` it waits for the end of the run, as `checkpoint` and `audit` do.",
    writes=True,
)
