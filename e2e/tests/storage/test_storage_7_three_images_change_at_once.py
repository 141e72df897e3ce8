"""While a writer goes on, the images of ZooKeeper, BookKeeper and HerdDB change at the same moment: never are two servers of the stack away
at once, and nothing is lost."""

from __future__ import annotations

import json
import time

from conftest import QUICKSTART, Stack, say
from proof import SERVERS, lost_nothing, made_whole, one_at_a_time

from herdkeeper_e2e.conditions import condition, pod_problem
from herdkeeper_e2e.pod_watch import PodWatch
from herdkeeper_e2e.sql_stack import SqlStack
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

ROWS = 50
ROLL = Limit(1500, 1)
CLUSTERS = {"zookeepercluster": "zk", "bookkeepercluster": "bk", "herddbcluster": "db"}
SUFFIX = "-under-another-tag"


def tag_again(stack: Stack, images: set[str]) -> None:
    """Gives images another tag on every worker: to Kubernetes it is another image."""
    sql = SqlStack(stack.kubectl, stack.kubectl.environment)
    for machine in sql.machines():
        if not machine.endswith("control-plane"):
            names = [f"docker.io/{image}" for image in sorted(images)]
            sql.on_machine(machine, " && ".join(f"ctr -n k8s.io images tag --force {name} {name}{SUFFIX} >/dev/null" for name in names))


def image_of(stack: Stack, kind: str) -> str:
    found = stack.kubectl.get(kind, CLUSTERS[kind])
    assert found is not None
    return str(found["spec"]["image"])


def all_settled(stack: Stack) -> bool | Pending:
    """Whether all servers run the other tag, and nothing is left to do."""
    for item in stack.kubectl.list(QUICKSTART):
        progressing = condition(item, "Progressing")
        if progressing is None or progressing["status"] != "False" or progressing["observedGeneration"] != item["metadata"]["generation"]:
            return Pending(f"{item['kind']}: {progressing and progressing['message']}")
    for pod in stack.kubectl.list("pods", SERVERS):
        image, problem = str(pod["spec"]["containers"][0]["image"]), pod_problem(pod)
        if not image.endswith(SUFFIX) or problem is not None:
            return Pending(f"{pod['metadata']['name']} runs {image}: {problem}")
    return True


def test_three_image_changes_at_once_never_take_two_servers_away_together(stack: Stack) -> None:
    stack.wait_until_ready()
    sql = SqlStack(stack.kubectl, stack.kubectl.environment)
    sql_leader, zookeeper_leader = sql.leader(), sql.leader_of_zookeeper()
    servers = {pod["metadata"]["name"] for pod in stack.kubectl.list("pods", SERVERS)}
    images = {kind: image_of(stack, kind) for kind in CLUSTERS}
    tag_again(stack, set(images.values()))
    writer = WriterProcess(stack.tools, "three_images_changed")
    writer.acknowledges(ROWS)
    watch = PodWatch(stack.kubectl, SERVERS)
    wait_for("all servers to be watched", lambda: servers <= {seen.pod for seen in watch.sights()} or Pending("not yet"), Limit(60))

    began = time.monotonic()
    writer.order("mark three images changed")
    for kind, image in images.items():
        patch = json.dumps({"spec": {"image": image + SUFFIX}})
        stack.kubectl.run("patch", kind, CLUSTERS[kind], "--type", "merge", "-p", patch)
    wait_for("the roll of everything", lambda: all_settled(stack), ROLL, say)
    say(f"nine servers were changed in {time.monotonic() - began:.0f} s")
    writer.acknowledges(ROWS)

    found = one_at_a_time(watch)
    assert {absence.pod for absence in found} == servers
    assert [absence.pod for absence in found if "-zookeeper-" in absence.pod][-1] == zookeeper_leader
    # the leader of the users' rows, though the other node leads the default tablespace
    assert [absence.pod for absence in found if "-herddb-" in absence.pod][-1] == sql_leader
    lost_nothing(writer)
    made_whole(stack, "after-three-images")
