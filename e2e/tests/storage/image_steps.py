"""How the storage scenarios change the images of a stack, and wait for it."""

from __future__ import annotations

from collections.abc import Mapping

from conftest import Stack

from herdkeeper_e2e.conditions import pod_problem, unsettled_reason
from herdkeeper_e2e.waiting import Limit, Pending

ROLL = Limit(1500, 1)
NAMES = {"ZooKeeperCluster": "zk", "BookKeeperCluster": "bk", "HerdDBCluster": "db"}
"""The quickstart's resources."""
LABELS = {
    "ZooKeeperCluster": "app.kubernetes.io/name=zookeeper",
    "BookKeeperCluster": "app.kubernetes.io/name in (bookie,autorecovery)",
    "HerdDBCluster": "app.kubernetes.io/name=herddb",
}
"""Their pods."""


def image_of(stack: Stack, kind: str) -> str:
    """What the servers of a resource run."""
    return str(stack.kubectl.list("pods", LABELS[kind])[0]["spec"]["containers"][0]["image"])


def want_image(stack: Stack, kind: str, image: str) -> None:
    """As a person asks for another one."""
    stack.kubectl.want(kind, NAMES[kind], image=image)


def all_run(stack: Stack, images: Mapping[str, str]) -> bool | Pending:
    """Whether all pods of these kinds run that image of theirs, and nothing is left to do."""
    for kind, image in images.items():
        if (unsettled := unsettled_reason(stack.sql.get(kind, NAMES[kind]))) is not None:
            return Pending(f"{kind}: {unsettled}")
        for pod in stack.kubectl.list("pods", LABELS[kind]):
            runs, problem = str(pod["spec"]["containers"][0]["image"]), pod_problem(pod)
            if runs != image or problem is not None:
                return Pending(f"{pod['metadata']['name']} runs {runs}: {problem}")
    return True
