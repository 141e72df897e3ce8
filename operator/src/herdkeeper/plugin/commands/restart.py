"""`kubectl herdkeeper restart`: restarts the servers of a cluster one by one."""

from __future__ import annotations

import datetime

from herdkeeper.plugin.change import Patch, carry_out
from herdkeeper.plugin.command import Answer, Argument, BadInputError, Call, Command, find_any
from herdkeeper.plugin.kinds import BOOKKEEPER, HERDDB, ZOOKEEPER, Kind
from herdkeeper.plugin.request import Awaited, Outcome, awaited, timeout_seconds, waiting
from herdkeeper.plugin.stack_tree import condition, said
from herdkeeper.shared.objects import Json
from herdkeeper.shared.time import text_of

RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
"""The annotation that `kubectl rollout restart` uses, too."""
KINDS = (ZOOKEEPER, BOOKKEEPER, HERDDB)


def run(call: Call) -> Answer:
    """Change the pods' template; with `--wait`, wait until the roll is finished."""
    timeout_seconds(call)
    kind, item = find_any(call.cluster, call.given.resource, "RESOURCE")
    if kind not in KINDS:
        raise BadInputError(
            f"RESOURCE {call.given.resource}: a {kind.name} has no servers; name a {', '.join(each.name for each in KINDS)}"
        )
    name = str(item["metadata"]["name"])
    answer = carry_out(call, [restarted(kind, name, datetime.datetime.now(datetime.UTC))])
    return awaited(call, answer, Awaited(kind, name, lambda now: settled(now, item["metadata"]["generation"]), said))


def restarted(kind: Kind, name: str, now: datetime.datetime) -> Patch:
    """Returns an annotation of the pod template that differs each second."""
    body = {"spec": {"pods": {"annotations": {RESTARTED_AT: text_of(now)}}}}
    return Patch(kind, name, body, "its servers are restarted one by one, each once the previous one serves")


def settled(item: Json, earlier: int) -> Outcome | None:
    """Returns the outcome once a later generation is settled, or None."""
    progressing = condition(item, "Progressing")
    generation = item["metadata"]["generation"]
    done = progressing is not None and progressing["reason"] == "Settled" and progressing.get("observedGeneration") == generation
    return Outcome("all servers run their new template, and serve", good=True) if done and generation > earlier else None


COMMAND = Command(
    "restart",
    "restarts the servers of a cluster, one by one, as a changed image would",
    run,
    (
        Argument("resource", "a ZooKeeperCluster, BookKeeperCluster or HerdDBCluster as KIND/NAME, e.g. hdb/db", kinds=KINDS),
        *waiting("3600"),
    ),
    description=f"It sets the annotation `{RESTARTED_AT}` in `spec.pods.annotations`. The operator waits before each server as in every "
    "roll: `status` shows for what.",
    writes=True,
)
