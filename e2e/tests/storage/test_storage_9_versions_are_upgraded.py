"""A stack of ZooKeeper 3.8 and BookKeeper 4.17 is upgraded to what the project ships, while a writer goes on: first the ensemble, then the
bookies, one server at a time. What the earlier versions wrote is read by the later ones, to the last entry."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
import yaml
from conftest import NAMESPACE, QUICKSTART, START, Stack, say
from proof import SERVERS, lost_nothing, made_whole, one_at_a_time

from herdkeeper_e2e.cluster import REPOSITORY, run
from herdkeeper_e2e.conditions import all_ready, condition, pod_problem
from herdkeeper_e2e.kubectl import Kubectl
from herdkeeper_e2e.pod_watch import PodWatch
from herdkeeper_e2e.tools_pod import Database, ToolsPod
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

ROWS = 200
ROLL = Limit(1500, 1)
EARLIER = {"ZooKeeperCluster": "herdkeeper/zookeeper:3.8.4", "BookKeeperCluster": "herdkeeper/bookkeeper:4.17.3"}
"""As e2e/images/earlier.sh builds them."""
SHIPPED = {"ZooKeeperCluster": "herdkeeper/zookeeper:0.1.0", "BookKeeperCluster": "herdkeeper/bookkeeper:0.1.0"}
NAMES = {"ZooKeeperCluster": "zk", "BookKeeperCluster": "bk"}
LABELS = {
    "ZooKeeperCluster": "app.kubernetes.io/name=zookeeper",
    "BookKeeperCluster": "app.kubernetes.io/name in (bookie,autorecovery)",
}
JARS = {
    "ZooKeeperCluster": "/opt/zookeeper/lib/zookeeper-[0-9]*.jar",
    "BookKeeperCluster": "/opt/bookkeeper/lib/bookkeeper-server-[0-9]*.jar",
}


def quickstart_of_earlier_versions() -> str:
    documents = list(yaml.safe_load_all((REPOSITORY / "examples/quickstart.yaml").read_text()))
    for document in documents:
        if document["kind"] in EARLIER:
            document["spec"]["image"] = EARLIER[document["kind"]]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})


@pytest.fixture
def earlier(kubectl: Kubectl) -> Iterator[Stack]:
    """The quickstart on the earlier versions, in a namespace of its own, Ready."""
    run([str(REPOSITORY / "e2e/images/earlier.sh")], kubectl.environment, say)
    own = Kubectl(f"{NAMESPACE}-upgrade", kubectl.environment)
    own.run("delete", "namespace", own.namespace, "--ignore-not-found", "--timeout=300s", timeout_seconds=320)
    own.run("create", "namespace", own.namespace)
    own.apply(quickstart_of_earlier_versions())
    wait_for("the quickstart of earlier versions", lambda: all_ready(own.list(QUICKSTART), 4), START, say)
    tools = ToolsPod(own, "tools", Database.of(own, "db", "bk", "flights"))
    tools.start()
    yield Stack(own, tools)
    own.run("delete", "namespace", own.namespace, "--wait=false")


def versions(stack: Stack, kind: str) -> set[str]:
    """What the pods of a resource have on their class paths."""
    return {
        str(stack.kubectl.exec(pod["metadata"]["name"], "sh", "-c", f"ls {JARS[kind]}")).strip()
        for pod in stack.kubectl.list("pods", LABELS[kind])
    }


def upgrade(stack: Stack, kind: str) -> None:
    """As a person does it: another image in the resource; ends when all of its pods run that and nothing is left to do."""

    def settled() -> bool | Pending:
        found = stack.kubectl.get(kind, NAMES[kind])
        progressing = condition(found or {}, "Progressing")
        if found is None or progressing is None or progressing["status"] != "False":
            return Pending(str(progressing and progressing["message"]))
        if progressing["observedGeneration"] != found["metadata"]["generation"]:
            return Pending("the operator has not seen the other image yet")
        for pod in stack.kubectl.list("pods", LABELS[kind]):
            image, problem = str(pod["spec"]["containers"][0]["image"]), pod_problem(pod)
            if image != SHIPPED[kind] or problem is not None:
                return Pending(f"{pod['metadata']['name']} runs {image}: {problem}")
        return True

    began, before = time.monotonic(), versions(stack, kind)
    stack.kubectl.run("patch", kind, NAMES[kind], "--type", "merge", "-p", json.dumps({"spec": {"image": SHIPPED[kind]}}))
    wait_for(f"the upgrade of {kind}", settled, ROLL, say)
    say(f"{before} became {versions(stack, kind)} in {time.monotonic() - began:.0f} s")


def test_earlier_versions_are_upgraded_one_server_at_a_time_and_nothing_is_lost(earlier: Stack) -> None:
    for kind, image in EARLIER.items():
        jars = versions(earlier, kind)
        assert len(jars) == 1
        assert image.rpartition(":")[2] in jars.pop()
    writer = WriterProcess(earlier.tools, "upgraded")
    writer.acknowledges(ROWS)
    earlier.sql.switch_over(earlier.sql.other())
    writer.acknowledges(ROWS)
    watch = PodWatch(earlier.kubectl, SERVERS)

    for kind in EARLIER:
        writer.order(f"mark {kind} upgraded")
        upgrade(earlier, kind)
        writer.acknowledges(ROWS)
        assert len(versions(earlier, kind)) == 1

    one_at_a_time(watch)
    # BookKeeper 4.17's ledgers are replayed by a SQL node that starts anew, and every copy is read
    earlier.sql.delete(earlier.sql.other())
    earlier.wait_until_ready()
    lost_nothing(writer)
    made_whole(earlier, "after-the-upgrade")
