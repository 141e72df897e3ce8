"""`kubectl herdkeeper pause` and `resume`: stop and resume the operator's changes of a resource."""

from __future__ import annotations

from herdkeeper.plugin.change import annotate, carry_out
from herdkeeper.plugin.command import Answer, Argument, Call, Command, find_any
from herdkeeper.plugin.kinds import RESOURCES
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json
from herdkeeper.shared.paused import paused_by, stops


def run_pause(call: Call) -> Answer:
    """Stop all changes of the resource's objects."""
    kind, item = find_any(call.cluster, call.given.resource, "RESOURCE")
    what = "the operator changes nothing of it until it is resumed; its status is still updated"
    return carry_out(call, [annotate(kind, item["metadata"]["name"], {names.PAUSED_ANNOTATION: "true"}, what)])


def run_resume(call: Call) -> Answer:
    """Remove the annotations that stop changes: of a pause, and of a shown plan."""
    kind, item = find_any(call.cluster, call.given.resource, "RESOURCE")
    off = dict.fromkeys((names.PAUSED_ANNOTATION, names.PLAN_ANNOTATION))
    return carry_out(call, [annotate(kind, item["metadata"]["name"], off, _after_resume(item))])


def _after_resume(item: Json) -> str:
    annotations = item["metadata"].get("annotations") or {}
    if stops(annotations.get(names.PLAN_ANNOTATION)):
        return "the operator continues, and carries out what its plan shows"
    return "the operator continues" if paused_by(annotations) is not None else "it was not paused; the operator goes on"


_RESOURCE = Argument("resource", "a resource as KIND/NAME, e.g. bookkeepercluster/bk or bkc/bk", kinds=RESOURCES)
PAUSE = Command(
    "pause",
    "stops all changes of a resource's objects; a deletion waits, too",
    run_pause,
    (_RESOURCE,),
    description="Its status is still updated. In a paused HerdDBCluster, the operator does not replace a lost leader either.",
    writes=True,
)
RESUME = Command(
    "resume",
    "resumes a resource that was paused, or whose plan was shown",
    run_resume,
    (_RESOURCE,),
    description="The operator then carries out a change whose plan is shown: also that of a `plan` which somebody runs now.",
    writes=True,
)
