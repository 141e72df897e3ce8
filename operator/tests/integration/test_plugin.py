"""The kubectl plugin against the real API server: it reads what is there, and what it asks for the operator does."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from kubernetes.dynamic import DynamicClient
from sql_database import HERDDB, NODES, TABLESPACE, named, serving_database
from stage import Json, Stage

from herdkeeper.plugin.api_server import Access, ApiServer
from herdkeeper.plugin.cluster import ConflictError
from herdkeeper.plugin.kinds import POD
from herdkeeper.plugin.main import main
from herdkeeper.shared import names
from herdkeeper_e2e.control_plane import ControlPlane

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def stage(stage: Stage) -> Stage:
    made = serving_database(stage)
    made.settle(TABLESPACE, "flights")
    return made


@pytest.fixture
def plugin(control_plane: ControlPlane, namespace: str) -> Run:
    """Runs a command line in the test's namespace; exit code and output. `rescan_after_seconds` is what happens while the command waits."""

    def run(*words: str, pause: Callable[[float], None] = lambda _: None) -> tuple[int, str]:
        output = io.StringIO()
        code = main([*words, "--kubeconfig", str(control_plane.kubeconfig), "-n", namespace], output=output, pause=pause)
        return code, output.getvalue()

    return run


def test_status_shows_what_is_there_and_ends_with_1_while_something_is_wrong(stage: Stage, plugin: Run) -> None:
    code, text = plugin("status")
    assert code == 0, text
    assert "✔ Tablespace/flights" in text
    stage.set_status(
        TABLESPACE, "flights", {"conditions": [{**ready(stage), "status": "False", "reason": "InvalidSpec", "message": "no such node"}]}
    )
    code, text = plugin("status", "-o", "json")
    assert code == 1
    assert json.loads(text)["state"] == "wrong"


def ready(stage: Stage) -> Json:
    return dict(next(entry for entry in stage.found(TABLESPACE, "flights")["status"]["conditions"] if entry["type"] == "Ready"))


def test_switchover_is_done_by_the_operator_and_waited_for(stage: Stage, plugin: Run) -> None:
    def pause(_: float) -> None:
        stage.reconcile(HERDDB, "db")
        stage.nodes.herddb_holds(named(stage), "flights", "a-uuid", ("follower", "leader"))
        stage.reconcile(HERDDB, "db")
        stage.reconcile(TABLESPACE, "flights")

    code, text = plugin("switchover", "flights", NODES[1], "--wait", pause=pause)
    assert code == 0, text
    assert f"done: led by {NODES[1]}" in text
    assert stage.found(TABLESPACE, "flights")["status"]["leader"] == NODES[1]


def test_a_dry_run_of_a_switchover_leaves_no_request(stage: Stage, plugin: Run) -> None:
    version = stage.found(TABLESPACE, "flights")["metadata"]["resourceVersion"]
    code, text = plugin("switchover", "flights", NODES[1], "--dry-run")
    assert (code, "nothing changed" in text) == (0, True)
    assert stage.found(TABLESPACE, "flights")["metadata"]["resourceVersion"] == version
    assert names.SWITCHOVER_ANNOTATION not in (stage.found(TABLESPACE, "flights")["metadata"].get("annotations") or {})


def test_a_tablespace_that_is_not_there_is_answered_with_those_that_are(
    stage: Stage, plugin: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plugin("switchover", "flightz", NODES[1])[0] == 2
    assert "there is flights" in capsys.readouterr().err


def test_a_drain_is_declared_and_taken_back(stage: Stage, plugin: Run) -> None:
    bookies = [{"number": number, "bookieId": f"bk-bookie-{number}-k2j4h6", "state": "Writable"} for number in range(3)]
    stage.set_status("BookKeeperCluster", "bk", {"bookies": bookies})
    assert plugin("drain", "bk-bookie-2")[0] == 0
    assert plugin("drain", "bk-bookie-1")[0] == 0
    assert stage.found("BookKeeperCluster", "bk")["spec"]["drain"] == [1, 2]
    assert plugin("undrain", "bk-bookie-2")[0] == 0
    assert stage.found("BookKeeperCluster", "bk")["spec"]["drain"] == [1]


def test_a_checkpoint_an_audit_and_a_restore_are_taken_by_the_api_server(stage: Stage, plugin: Run) -> None:
    """Also by its rules: each is made as the models say."""
    for words in (
        ("checkpoint", "flights", "--claim", "volume", "--name", "first"),
        ("checkpoint", "flights", "--verify", "Reread", "--name", "second"),
        ("audit", "bk", "--name", "audit"),
        ("restore", "flights", "--at", "2026-01-21T14:30:00.5+01:00", "--as", "before"),
        ("restore", "flights", "--from-checkpoint", "first", "--as", "again"),
    ):
        code, text = plugin(*words)
        assert code == 0, text
    assert stage.found("Checkpoint", "second")["spec"]["destination"] == {"persistentVolumeClaim": {"claimName": "volume"}}
    assert stage.found(TABLESPACE, "before")["spec"]["bootstrap"]["checkpoint"]["name"].startswith("before-")


def test_a_dry_run_tells_what_the_api_server_would_refuse(stage: Stage, plugin: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert plugin("checkpoint", "flights", "--claim", "volume", "--name", "Not_a_name", "--dry-run")[0] == 1
    assert "Not_a_name" in capsys.readouterr().err
    assert plugin("checkpoint", "flights", "--claim", "volume", "--name", "first", "--dry-run")[0] == 0
    assert stage.live("Checkpoint", "first") is None


def test_a_restore_into_a_name_that_is_too_long_leaves_no_checkpoint(stage: Stage, plugin: Run) -> None:
    assert plugin("checkpoint", "flights", "--claim", "volume", "--name", "first")[0] == 0
    assert plugin("restore", "flights", "--at", "2026-01-21T14:30:00Z", "--as", "flights-as-it-was-before-the-great-mistake")[0] == 1
    assert [item["metadata"]["name"] for item in stage.listed("Checkpoint")] == ["first"]


def test_run_now_has_the_operator_make_a_run(stage: Stage, plugin: Run, charted: DynamicClient) -> None:
    def pause(_: float) -> None:
        for made in stage.listed("Checkpoint"):
            stage.set_status("Checkpoint", made["metadata"]["name"], {"phase": "Succeeded", "message": "written and verified"})
        stage.reconcile("ScheduledCheckpoint", "nightly")

    stage.operator = charted
    template = {"tablespaceRef": {"name": "flights"}, "destination": {"persistentVolumeClaim": {"claimName": "volume"}}}
    stage.declare("ScheduledCheckpoint", "nightly", {"schedule": "0 3 * * *", "template": template})
    code, text = plugin("run-now", "nightly", "--wait", pause=pause)
    assert (code, "done: nightly-" in text, "written and verified" in text) == (0, True, True), text


def test_a_full_check_that_the_operator_refuses_ends_with_1(stage: Stage, plugin: Run) -> None:
    stage.nodes.herddb_holds(named(stage), "flights", "a-uuid", ("leader", "booting"))
    code, text = plugin("full-check", "flights", "--wait", pause=lambda _: stage.reconcile(TABLESPACE, "flights"))
    assert (code, "refused: " in text) == (1, True), text


def test_a_paused_resource_gets_no_write_until_it_is_resumed(stage: Stage, plugin: Run) -> None:
    assert plugin("pause", "hdb/db")[0] == 0
    stage.patch(HERDDB, "db", {"spec": {"resources": {"memory": "2Gi"}}})
    before = stage.found("StatefulSet", "db-herddb")["metadata"]["generation"]
    stage.reconcile(HERDDB, "db")
    assert stage.found("StatefulSet", "db-herddb")["metadata"]["generation"] == before
    assert plugin("resume", "hdb/db")[0] == 0
    stage.reconcile(HERDDB, "db")
    assert stage.found("StatefulSet", "db-herddb")["metadata"]["generation"] > before


def test_a_restart_gives_the_servers_another_template(stage: Stage, plugin: Run) -> None:
    before = stage.found("StatefulSet", "db-herddb")["metadata"]["generation"]
    assert plugin("restart", "hdb/db")[0] == 0
    stage.reconcile(HERDDB, "db")
    template = stage.found("StatefulSet", "db-herddb")["spec"]["template"]
    assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]
    assert stage.found("StatefulSet", "db-herddb")["metadata"]["generation"] > before


def test_the_plan_of_a_change_is_the_operator_s_and_the_resource_is_as_before(stage: Stage, plugin: Run, tmp_path: Path) -> None:
    file = tmp_path / "change.json"
    metadata = {"apiVersion": "herdkeeper.io/v1alpha1", "kind": HERDDB, "metadata": {"name": "db"}}
    file.write_text(json.dumps({**metadata, "spec": {"bookKeeperRef": {"name": "bk"}, "replicas": 3, "resources": {"memory": "2Gi"}}}))
    before, servers = stage.found(HERDDB, "db"), stage.versions()
    code, text = plugin("plan", "-f", str(file), pause=lambda _: stage.reconcile(HERDDB, "db"))
    assert (code, "1. " in text) == (0, True), text
    after = stage.found(HERDDB, "db")
    assert after["spec"] == before["spec"]
    assert names.PLAN_ANNOTATION not in (after["metadata"].get("annotations") or {})
    assert stage.versions() == servers


def test_a_plan_of_what_the_rules_refuse_is_refused_with_their_message(
    stage: Stage, plugin: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "change.json"
    metadata = {"apiVersion": "herdkeeper.io/v1alpha1", "kind": HERDDB, "metadata": {"name": "db"}}
    file.write_text(json.dumps({**metadata, "spec": {"ledgers": {"writeQuorum": 9}}}))
    version = stage.found(HERDDB, "db")["metadata"]["resourceVersion"]
    assert plugin("plan", "-f", str(file))[0] == 1
    assert "spec.ledgers" in capsys.readouterr().err
    assert stage.found(HERDDB, "db")["metadata"]["resourceVersion"] == version


def test_a_plan_with_a_field_that_is_not_known_is_refused_as_kubectl_apply_would_be(
    stage: Stage, plugin: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "change.json"
    metadata = {"apiVersion": "herdkeeper.io/v1alpha1", "kind": HERDDB, "metadata": {"name": "db"}}
    file.write_text(json.dumps({**metadata, "spec": {"replicsa": 5}}))
    before = stage.found(HERDDB, "db")["metadata"]["resourceVersion"]
    assert plugin("plan", "-f", str(file), "--timeout", "1")[0] == 1
    assert 'unknown field "spec.replicsa"' in capsys.readouterr().err
    assert stage.found(HERDDB, "db")["metadata"]["resourceVersion"] == before


@pytest.mark.parametrize(
    ("before", "changed", "field"),
    [
        ({"security": {"mode": "Insecure"}}, {"security": {"mode": "Permissive"}}, "spec.security.mode"),
        ({"replicas": 1}, {"replicas": 3}, "spec.replicas"),
    ],
)
def test_a_plan_that_could_not_be_taken_back_is_not_shown(
    stage: Stage, plugin: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], before: Json, changed: Json, field: str
) -> None:
    stage.declare("ZooKeeperCluster", "other", {**before})
    made = stage.found("ZooKeeperCluster", "other")
    file = tmp_path / "change.json"
    file.write_text(json.dumps({"kind": "ZooKeeperCluster", "metadata": {"name": "other"}, "spec": changed}))
    code, _ = plugin("plan", "-f", str(file), "--timeout", "1")
    after = stage.found("ZooKeeperCluster", "other")
    assert after["spec"] == made["spec"]
    assert names.PLAN_ANNOTATION not in (after["metadata"].get("annotations") or {})
    assert (code, f"this change of {field} of the ZooKeeperCluster other can't be reverted" in capsys.readouterr().err) == (2, True)


def test_a_connection_is_read_from_the_secret_that_the_operator_made(stage: Stage, plugin: Run) -> None:
    code, text = plugin("connection", "flights")
    assert code == 0, text
    assert f"flights-leader.{stage.namespace}.svc" in text
    assert "--show-password" in text


def test_a_pod_is_deleted_only_if_it_is_the_one_that_was_seen_and_not_in_a_dry_run(
    stage: Stage, control_plane: ControlPlane, namespace: str
) -> None:
    cluster = ApiServer(Access(namespace, kubeconfig=str(control_plane.kubeconfig)))
    uid = stage.found("Pod", NODES[0])["metadata"]["uid"]
    with pytest.raises(ConflictError):
        cluster.delete(POD, NODES[0], "of-another-pod")
    cluster.delete(POD, NODES[0], uid, dry_run=True)
    assert stage.found("Pod", NODES[0])["metadata"].get("deletionTimestamp") is None
    cluster.delete(POD, NODES[0], uid)
    pod = stage.live("Pod", NODES[0])
    assert pod is None or "deletionTimestamp" in pod["metadata"]


def test_doctor_and_bundle_come_to_their_end_without_kubelets_and_no_password_is_in_the_bundle(
    stage: Stage, plugin: Run, tmp_path: Path
) -> None:
    stage.stop_serving(NODES[0])
    code, text = plugin("doctor")
    assert code == 1
    assert text.startswith("operator: it has no pod in the namespace herdkeeper-system")
    assert f"{NODES[0]}: starting" not in text  # it is young
    waits = {"waiting": {"reason": "CrashLoopBackOff"}}
    crashed = {"name": "herddb", "ready": False, "restartCount": 3, "image": "i", "imageID": "i", "state": waits}
    stage.set_status("Pod", NODES[0], {"containerStatuses": [crashed]})
    code, text = plugin("doctor")
    assert (code, f"{NODES[0]}: CrashLoopBackOff" in text) == (1, True), text
    assert plugin("support-bundle", "--file", str(tmp_path / "bundle.zip"))[0] == 0
    password = stage.found("Secret", "flights-connection")["data"]["password"]
    with zipfile.ZipFile(tmp_path / "bundle.zip") as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    assert "db-herddb" in files["statefulsets.json"]
    assert not [name for name, content in files.items() if password in content or base64.b64decode(password).decode() in content]
