"""While SQL and a client with striped ledgers write, the images of ZooKeeper, BookKeeper and HerdDB change at the same moment: never are
two servers of the stack away at once, and nothing is lost."""

from __future__ import annotations

from conftest import Stack, say
from image_steps import NAMES, ROLL, all_run, image_of, want_image
from load import Load
from proof import all_is_whole
from under_load import during, one_at_a_time, seen_away

from herdkeeper_e2e.kubectl import SERVERS
from herdkeeper_e2e.pod_watch import PodWatch
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

SUFFIX = "-under-another-tag"


def tag_again(stack: Stack, images: set[str]) -> None:
    """Gives images another tag on every worker: to Kubernetes it is another image."""
    sql = stack.sql
    for machine in sql.machines():
        if not machine.endswith("control-plane"):
            names = [f"docker.io/{image}" for image in sorted(images)]
            sql.on_machine(machine, " && ".join(f"ctr -n k8s.io images tag --force {name} {name}{SUFFIX} >/dev/null" for name in names))


def test_three_image_changes_at_once_never_take_two_servers_away_together(stack: Stack) -> None:
    stack.wait_until_ready()
    sql = stack.sql
    sql_leader, zookeeper_leader = sql.leader(), sql.leader_of_zookeeper()
    servers = {pod["metadata"]["name"] for pod in stack.kubectl.list("pods", SERVERS)}
    images = {kind: image_of(stack, kind) for kind in NAMES}
    tag_again(stack, set(images.values()))
    load = Load(stack, "three_images_changed").acknowledges()
    watch = PodWatch(stack.kubectl, SERVERS)
    wait_for("all servers to be watched", lambda: servers <= {seen.pod for seen in watch.sights()} or Pending("not yet"), Limit(60))

    others = {kind: image + SUFFIX for kind, image in images.items()}
    with during("three images changed", load):
        for kind, image in others.items():
            want_image(stack, kind, image)
        wait_for("the roll of everything", lambda: all_run(stack, others), ROLL, say)

    found = seen_away(watch)
    one_at_a_time(found)
    assert {absence.pod for absence in found} == servers
    assert [absence.pod for absence in found if "-zookeeper-" in absence.pod][-1] == zookeeper_leader
    # the leader of the users' rows, though the other node leads the default tablespace
    assert [absence.pod for absence in found if "-herddb-" in absence.pod][-1] == sql_leader
    all_is_whole(load, "after-three-images")
