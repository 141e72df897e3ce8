"""The operator's own process against a real API server, under the ServiceAccount and the rules that the chart gives it."""

from __future__ import annotations

import datetime
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from kubernetes.dynamic import DynamicClient
from stage import ZOOKEEPER_ADDRESS, Stage

from herdkeeper.api import ReplicationAudit
from herdkeeper.api.resource import NO_STATUS
from herdkeeper.clients.kubernetes import KubernetesReader, LiveSource
from herdkeeper.planning import requeue
from herdkeeper.process.lease import NAME as LEASE
from herdkeeper.shared import names
from herdkeeper.shared.names import BookKeeperNames, ObjectKey
from herdkeeper.shared.time import text_of
from herdkeeper_e2e.control_plane import HOME, REPOSITORY, ControlPlane, apply_rules, make_namespace, rendered
from herdkeeper_e2e.free_ports import free_port

KIND = "ZooKeeperCluster"
START_SECONDS = 180.0
STOP_SECONDS = 60.0


@dataclass(frozen=True)
class Operator:
    """A running `herdkeeper run`: its process, its port, and the file of its log."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def get(self, path: str) -> tuple[int, str]:
        """Status code and body of an answer; 0 while nothing listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except (urllib.error.URLError, OSError):
            return 0, ""

    def metric(self, name: str) -> float:
        """The sum of a metric over all its labels."""
        lines = re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", self.get("/metrics")[1], re.MULTILINE)
        return sum(float(value) for value in lines)

    def requests(self) -> list[float]:
        """How often it has written, and looked at the API server itself."""
        return [self.metric(name) for name in ("herdkeeper_writes_total", "herdkeeper_live_looks_total")]

    def terminate(self) -> int:
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECONDS)

    def until(self, what: Callable[[], bool], seconds: float = START_SECONDS) -> None:
        """Wait until something holds. AssertionError with the log when it does not, or when the process ended before."""
        deadline = time.monotonic() + seconds
        while not what():
            assert self.process.poll() is None, f"the operator ended with {self.process.returncode}: {self.tail()}"
            assert time.monotonic() < deadline, f"it did not happen within {seconds} s: {self.tail()}"
            time.sleep(0.05)  # between polls of the condition

    def tail(self) -> str:
        """The end of the log."""
        return self.log.read_text()[-4000:]


@dataclass
class Installation:
    """Starts operators with the settings that the chart would give them."""

    plane: ControlPlane
    folder: Path
    processes: ExitStack

    def install(self, *settings: str) -> None:
        """The chart's rules, rendered with these settings."""
        apply_rules(self.plane, rendered(*settings))

    def start(self, namespaces: str, name: str = "herdkeeper-0", **settings: str) -> Operator:
        """An operator, whose port answers. `namespaces` are those that it watches, empty for all."""
        port = free_port()
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPOSITORY / "operator" / "src"),
            "KUBECONFIG": str(self.plane.operator_kubeconfig),
            "PYTHONWARNINGS": "ignore:Unverified HTTPS request",
            "HERDKEEPER_WATCH_NAMESPACES": namespaces,
            "HERDKEEPER_POD_NAMESPACE": HOME,
            "HERDKEEPER_POD_NAME": name,
            "HERDKEEPER_HTTP_PORT": str(port),
            "HERDKEEPER_RESYNC_SECONDS": "3600",
            **settings,
        }
        log = self.folder / f"{name}-{port}.log"
        with log.open("wb") as output:
            command = [sys.executable, "-m", "herdkeeper.cli", "run"]
            process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
        self.processes.callback(_end, process)
        operator = Operator(process, port, log)
        operator.until(lambda: operator.get("/healthz")[0] == 200)
        return operator


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()


@pytest.fixture
def installation(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Installation]:
    """The operator's ServiceAccount without any rights, before and after."""
    make_namespace(control_plane, HOME)
    with ExitStack() as processes:
        yield Installation(control_plane, tmp_path, processes)
    with control_plane.api_client() as api:
        chosen = "app.kubernetes.io/name=herdkeeper-operator"
        rbac = client.RbacAuthorizationV1Api(api)
        rbac.delete_collection_cluster_role_binding(label_selector=chosen)
        for binding in rbac.list_role_binding_for_all_namespaces(label_selector=chosen).items:
            rbac.delete_namespaced_role_binding(binding.metadata.name, binding.metadata.namespace)
        client.CoordinationV1Api(api).delete_collection_namespaced_lease(HOME)


@pytest.fixture
def operator(installation: Installation, namespace: str) -> Operator:
    """An operator that watches the test's namespace and leads."""
    installation.install(f"watchNamespaces={{{namespace}}}")
    operator = installation.start(namespace)
    operator.until(lambda: operator.metric("herdkeeper_leading") == 1)
    return operator


def reason(stage: Stage, name: str = "zk") -> str | None:
    """The reason of a resource's condition Ready, None before the operator has looked at it."""
    seen = "conditions" in stage.found(KIND, name)["status"]
    return stage.condition(KIND, name)[1] if seen else None


def holder(plane: ControlPlane) -> str:
    with plane.api_client() as api:
        return str(client.CoordinationV1Api(api).read_namespaced_lease(LEASE, HOME).spec.holder_identity or "")


def refused(operator: Operator) -> list[str]:
    """Lines of the log that tell of something that the API server did not allow."""
    return [line for line in operator.log.read_text().splitlines() if re.search(r"orbidden|\b403\b", line)]


@pytest.mark.parametrize("everywhere", [True, False], ids=["all-namespaces", "one-namespace"])
def test_with_the_charts_rules_alone_it_makes_a_cluster(installation: Installation, stage: Stage, everywhere: bool) -> None:
    installation.install(*(() if everywhere else (f"watchNamespaces={{{stage.namespace}}}",)))
    stage.declare(KIND, "before", {"replicas": 1, "deletionPolicy": "Delete"})
    operator = installation.start("" if everywhere else stage.namespace)
    operator.until(lambda: reason(stage, "before") == "MembersNotReady")
    stage.declare(KIND, "after", {"replicas": 3})
    # the event follows the status; others may follow it
    operator.until(lambda: "MembersNotReady" in [event["reason"] for event in stage.events("after")])
    assert reason(stage, "after") == "MembersNotReady"
    for name in ("before-zookeeper", "after-zookeeper"):
        assert stage.live("StatefulSet", name) is not None
    assert refused(operator) == []


def every_deed(stage: Stage) -> None:
    """Clusters, an audit with executors and a schedule are made, and go with their data; nothing that the operator does is refused."""
    stage.declare("BookKeeperCluster", "bk", {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": 1, "deletionPolicy": "Delete"})
    stage.settle("BookKeeperCluster", "bk")
    stage.serve_bookie(BookKeeperNames(ObjectKey(stage.namespace, "bk")), 0)
    stage.settle("BookKeeperCluster", "bk")
    assert stage.live("NetworkPolicy", "bk-bookie") is not None
    stage.patch("BookKeeperCluster", "bk", {"spec": {"autoRecovery": {"enabled": False}, "networkPolicy": "Disabled"}})
    stage.settle("BookKeeperCluster", "bk")
    assert stage.live("NetworkPolicy", "bk-bookie") is None
    ledgers = {"ensembleSize": 1, "writeQuorum": 1, "ackQuorum": 1}
    stage.declare("HerdDBCluster", "db", {"bookKeeperRef": {"name": "bk"}, "ledgers": ledgers, "deletionPolicy": "Delete"})
    stage.settle("HerdDBCluster", "db")
    stage.declare("ReplicationAudit", "found", {"bookKeeperRef": {"name": "bk"}, "job": {"executors": {"instances": 1}}})
    stage.settle("ReplicationAudit", "found")
    for kind in ("ServiceAccount", "NetworkPolicy", "Job"):
        assert stage.live(kind, "found-audit") is not None
    assert stage.live("RoleBinding", f"found-audit-{names.DRIVER_ROLE}") is not None
    assert stage.live("Secret", "db-herddb-credentials") is not None
    schedule = {"schedule": "0 3 * * *", "successfulHistoryLimit": 1, "template": {"bookKeeperRef": {"name": "bk"}}}
    stage.declare("ScheduledReplicationAudit", "daily", schedule)
    days = [datetime.datetime(2100, 1, day, 3, tzinfo=datetime.UTC) for day in (1, 2)]
    for day in days:
        stage.reconcile_at(day, "ScheduledReplicationAudit", "daily")
        ended = {"phase": "Succeeded", "completedAt": text_of(day + datetime.timedelta(hours=1))}
        stage.set_status("ReplicationAudit", names.scheduled_run("daily", day), ended)
    stage.patch("ScheduledReplicationAudit", "daily", {"metadata": {"annotations": {names.RUN_NOW_ANNOTATION: "yes"}}})
    stage.reconcile_at(days[-1] + datetime.timedelta(hours=2), "ScheduledReplicationAudit", "daily")
    audits = [
        document["metadata"]["name"]
        for document in KubernetesReader(LiveSource(stage.dynamic)).documents(ReplicationAudit, stage.namespace)
    ]
    assert audits == ["daily-210001020300", "daily-21000102050000", "found"]
    stage.end_bookies(BookKeeperNames(ObjectKey(stage.namespace, "bk")))
    for kind, name in (("HerdDBCluster", "db"), ("BookKeeperCluster", "bk")):
        stage.delete(kind, name)
        for _ in range(10):
            stage.reconcile(kind, name)
            stage.let_claims_go()
        assert stage.live(kind, name) is None
    events = [event for name in ("bk", "db", "found", "daily") for event in stage.events(name)]
    assert len(events) > 10
    assert [event["message"] for event in events if event["reason"] == "ActionFailed"] == []


def test_the_charts_rules_are_enough_for_all_that_it_does(
    installation: Installation, control_plane: ControlPlane, dynamic: DynamicClient, namespace: str
) -> None:
    installation.install(f"watchNamespaces={{{namespace}}}")
    every_deed(Stage(dynamic, namespace, operator=control_plane.dynamic_client(token="operator-token")))


def test_it_leaves_alone_what_is_not_in_the_namespaces_that_it_watches(
    operator: Operator, stage: Stage, dynamic: DynamicClient, control_plane: ControlPlane
) -> None:
    elsewhere = Stage(dynamic, make_namespace(control_plane, f"{stage.namespace}-elsewhere"))
    elsewhere.declare(KIND, "zk", {"replicas": 1})
    stage.declare(KIND, "zk", {"replicas": 1})
    operator.until(lambda: reason(stage) == "MembersNotReady")
    assert (elsewhere.made(), elsewhere.found(KIND, "zk")["status"]) == ({}, NO_STATUS)


def test_a_namespace_without_its_rights_takes_it_from_no_other_one(
    installation: Installation, stage: Stage, control_plane: ControlPlane
) -> None:
    """Such as one that was deleted, with the operator's Role, and made anew. kopf ends after a minute in which a watch was refused."""
    elsewhere = make_namespace(control_plane, f"{stage.namespace}-elsewhere")
    installation.install(f"watchNamespaces={{{stage.namespace}}}")
    operator = installation.start(f"{elsewhere},{stage.namespace}")
    stage.declare(KIND, "zk", {"replicas": 1})
    operator.until(lambda: reason(stage) == "MembersNotReady")
    assert refused(operator) == []
    (told,) = [line for line in operator.log.read_text().splitlines() if "has no rights in namespaces that it is to watch" in line]
    assert json.loads(told)["namespaces"] == [elsewhere]


@pytest.fixture
def quiet(operator: Operator, stage: Stage) -> Operator:
    """A ZooKeeperCluster zk whose only member serves, and an operator that looks at it no more: the resync is an hour away."""
    stage.declare(KIND, "zk", {"replicas": 1})
    operator.until(lambda: stage.live("StatefulSet", "zk-zookeeper") is not None)
    stage.serve("zk-zookeeper")
    operator.until(lambda: stage.found("ConfigMap", "zk-zookeeper")["data"]["founding"] == "false")
    seen = [operator.metric("herdkeeper_reconcile_total"), time.monotonic()]

    def still() -> bool:
        count = operator.metric("herdkeeper_reconcile_total")
        if count != seen[0]:
            seen[:] = [count, time.monotonic()]
        return time.monotonic() - seen[1] > 2 * requeue.SOON

    operator.until(still)
    return operator


def test_an_event_is_enough_to_have_drift_put_back(quiet: Operator, stage: Stage) -> None:
    stage.delete("ConfigMap", "zk-zookeeper")
    quiet.until(lambda: stage.live("ConfigMap", "zk-zookeeper") is not None)
    stage.patch("StatefulSet", "zk-zookeeper", {"metadata": {"labels": {names.COMPONENT_LABEL: "drifted"}}})
    quiet.until(lambda: stage.found("StatefulSet", "zk-zookeeper")["metadata"]["labels"][names.COMPONENT_LABEL] == "zookeeper")


def test_an_event_is_enough_to_see_that_a_pod_serves_no_more(quiet: Operator, stage: Stage) -> None:
    assert stage.found(KIND, "zk")["status"]["readyMembers"] == 1
    stage.stop_serving("zk-zookeeper-0")
    quiet.until(lambda: reason(stage) == "MembersNotReady")


def test_what_depends_on_a_resource_is_looked_at_when_that_changes(operator: Operator, stage: Stage) -> None:
    stage.declare("BookKeeperCluster", "bk", {"zooKeeperRef": {"name": "zk"}})
    operator.until(
        lambda: "the ZooKeeperCluster zk does not exist" in (stage.found("BookKeeperCluster", "bk").get("status") or {}).get("message", "")
    )
    stage.declare(KIND, "zk", {"replicas": 1})
    operator.until(lambda: "is not Ready yet" in stage.found("BookKeeperCluster", "bk")["status"]["message"])


def test_an_event_is_enough_to_see_that_a_run_of_a_schedule_ended(operator: Operator, stage: Stage) -> None:
    spec = {"schedule": "0 3 1 1 *", "template": {"bookKeeperRef": {"name": "bk"}}}
    stage.declare("ScheduledReplicationAudit", "yearly", spec, {names.RUN_NOW_ANNOTATION: "yes"})

    def status() -> dict[str, Any]:
        return dict(stage.found("ScheduledReplicationAudit", "yearly").get("status") or {})

    operator.until(lambda: status().get("active") is not None and status().get("lastRequest") is not None)
    run = status()["active"]
    operator.until(lambda: stage.found("ReplicationAudit", run)["status"] != NO_STATUS)
    stage.set_status("ReplicationAudit", run, {"phase": "Succeeded", "completedAt": "2100-01-01T04:00:00Z", "findingsTotal": 3})
    operator.until(lambda: status().get("lastFindings") == 3)
    assert status()["lastSuccessfulTime"] == "2100-01-01T04:00:00Z"
    assert refused(operator) == []


def test_probes_and_metrics_are_served(operator: Operator, stage: Stage) -> None:
    assert [operator.get(path) for path in ("/healthz", "/readyz")] == [(200, "ok\n")] * 2
    assert operator.get("/elsewhere")[0] == 404
    stage.declare(KIND, "zk", {"replicas": 1})
    operator.until(lambda: reason(stage) == "MembersNotReady")
    counted = re.compile(rf'^herdkeeper_reconcile_total{{kind="{KIND}",outcome="ok"}} [1-9]', re.MULTILINE)
    operator.until(lambda: counted.search(operator.get("/metrics")[1]) is not None)  # it is counted once its status is written
    metrics = operator.get("/metrics")[1]
    assert re.search(r'^herdkeeper_writes_total{kind="StatefulSet",verb="patch"} 1.0$', metrics, re.MULTILINE)
    assert f'herdkeeper_resource_ready{{kind="{KIND}",name="zk",namespace="{stage.namespace}"}} 0.0' in metrics


def test_a_settled_cluster_is_looked_at_again_and_again_without_a_request(installation: Installation, stage: Stage) -> None:
    installation.install(f"watchNamespaces={{{stage.namespace}}}")
    operator = installation.start(stage.namespace, HERDKEEPER_RESYNC_SECONDS="0.2")
    stage.declare(KIND, "zk", {"replicas": 1})
    operator.until(lambda: reason(stage) == "MembersNotReady")
    asked, since = operator.requests(), operator.metric("herdkeeper_reconcile_total")

    def ten_looks_without_a_request() -> bool:
        """Events of its own writes come when the API server gets to them: each has the count begin anew."""
        nonlocal asked, since
        if (now := operator.requests()) != asked:
            asked, since = now, operator.metric("herdkeeper_reconcile_total")
        return operator.metric("herdkeeper_reconcile_total") > since + 10 and operator.requests() == asked

    operator.until(ten_looks_without_a_request)
    assert min(asked) > 0


def test_after_sigterm_it_ends_in_order_and_lets_another_lead(
    operator: Operator, installation: Installation, stage: Stage, control_plane: ControlPlane
) -> None:
    assert holder(control_plane) == "herdkeeper-0"
    stage.declare(KIND, "zk", {"replicas": 1})
    operator.until(lambda: reason(stage) == "MembersNotReady")
    assert operator.terminate() == 0
    assert json.loads(operator.log.read_text().splitlines()[-1])["event"] == "stopped"
    assert holder(control_plane) == ""


def test_a_second_one_stands_by_and_goes_on_when_the_first_one_ends(
    operator: Operator, installation: Installation, stage: Stage, control_plane: ControlPlane
) -> None:
    second = installation.start(stage.namespace, "herdkeeper-1")
    second.until(lambda: "waiting for the Lease" in second.tail())
    stage.declare(KIND, "zk", {"replicas": 1})
    operator.until(lambda: reason(stage) == "MembersNotReady")
    assert second.get("/readyz") == (200, "ok\n")
    assert (second.metric("herdkeeper_leading"), second.metric("herdkeeper_reconcile_total")) == (0, 0)
    operator.terminate()
    stage.declare(KIND, "next", {"replicas": 1})
    second.until(lambda: reason(stage, "next") == "MembersNotReady")
    assert holder(control_plane) == "herdkeeper-1"


def test_one_that_stands_by_ends_in_order_too(operator: Operator, installation: Installation, namespace: str) -> None:
    second = installation.start(namespace, "herdkeeper-1")
    second.until(lambda: "waiting for the Lease" in second.tail())
    assert second.terminate() == 0


def test_one_that_lost_its_lease_ends_at_once_with_an_error(operator: Operator, dynamic: DynamicClient) -> None:
    leases: Any = dynamic.resources.get(api_version="coordination.k8s.io/v1", kind="Lease")
    body = {"spec": {"holderIdentity": "somebody-else", "renewTime": "2040-01-01T00:00:00.000000Z"}}
    leases.patch(body=body, name=LEASE, namespace=HOME, content_type="application/merge-patch+json")
    assert operator.process.wait(START_SECONDS) == 1
    assert "the Lease was lost" in operator.tail()
    assert leases.get(name=LEASE, namespace=HOME).spec.holderIdentity == "somebody-else"


def test_a_setting_that_it_does_not_understand_is_named() -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "operator" / "src"), "HERDKEEPER_RESYNC_SECONDS": "often"}
    command = [sys.executable, "-m", "herdkeeper.cli", "run"]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=START_SECONDS, check=False)
    assert (answer.returncode, answer.stderr) == (2, "HERDKEEPER_RESYNC_SECONDS is 'often': set a number greater than 0\n")
