"""`kubectl herdkeeper pause` and `resume`: the operator leaves a resource alone, or goes on."""

from __future__ import annotations

from herdkeeper.plugin.change import annotate, carry_out
from herdkeeper.plugin.command import Answer, Argument, Call, Command
from herdkeeper.plugin.lookup import find_any
from herdkeeper.shared import names


def run_pause(call: Call) -> Answer:
    """Stops every change of the resource's objects."""
    kind, item = find_any(call.cluster, call.given.resource, "RESOURCE")
    what = "the operator changes nothing of it until it is resumed; its status is kept"
    return carry_out(call, [annotate(kind, item["metadata"]["name"], {names.PAUSED_ANNOTATION: "true"}, what)])


def run_resume(call: Call) -> Answer:
    """Takes the annotations off that stop changes: of a pause, and of a plan that is shown."""
    kind, item = find_any(call.cluster, call.given.resource, "RESOURCE")
    off = dict.fromkeys((names.PAUSED_ANNOTATION, names.PLAN_ANNOTATION))
    return carry_out(call, [annotate(kind, item["metadata"]["name"], off, "the operator goes on")])


_RESOURCE = Argument("resource", "a resource as KIND/NAME, e.g. bookkeepercluster/bk or bkc/bk")
PAUSE = Command(
    "pause",
    "has the operator change nothing of a resource's objects; a deletion waits, too",
    run_pause,
    (_RESOURCE,),
    description="Its status is still kept. Of a HerdDBCluster that is paused the operator replaces no lost leader either.",
    writes=True,
)
RESUME = Command(
    "resume", "has the operator go on with a resource that was paused, or whose plan was shown", run_resume, (_RESOURCE,), writes=True
)
