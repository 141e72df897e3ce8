"""`kubectl herdkeeper roll-authorities`: makes other authorities take over in a stack with certificates."""

from __future__ import annotations

from herdkeeper.plugin.command import Answer, Argument, Call, Command, find
from herdkeeper.plugin.kinds import ZOOKEEPER
from herdkeeper.plugin.request import Request, ask, waiting
from herdkeeper.shared import names

REQUEST = Request(names.ROLL_AUTHORITIES_ANNOTATION, "now", names.ROLL_AUTHORITIES_ANSWER_ANNOTATION)


def run(call: Call) -> Answer:
    """Request a roll; with `--wait`, wait until the operator has begun or refused it, not until it has ended."""
    name = call.given.zookeeper
    find(call.cluster, ZOOKEEPER, name, "ZOOKEEPER")
    return ask(call, ZOOKEEPER, name, REQUEST, "other authorities were requested")


COMMAND = Command(
    "roll-authorities",
    "makes other authorities take over in a stack with certificates",
    run,
    (Argument("zookeeper", "a ZooKeeperCluster", kind=ZOOKEEPER), *waiting("120")),
    description="It takes an hour or so. Members of ZooKeeper restart three times, one at a time. `--wait` waits until it has begun, not "
    "until it has ended.",
    writes=True,
)
