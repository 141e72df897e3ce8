"""`kubectl herdkeeper report`: the pod that reads it, what becomes of that, and reports that can't be had."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from played_cluster import Json, PlayedCluster, called, resource

from herdkeeper.plugin.cluster import ClusterError
from herdkeeper.plugin.command import FINE, BadInputError
from herdkeeper.plugin.commands import report
from herdkeeper.plugin.commands.report import report_pod

PLACE = {"persistentVolumeClaim": {"claimName": "checkpoints"}}
SECURITY = {"runAsNonRoot": True}
JOB: Json = {
    "kind": "Job",
    "metadata": {"name": "flights-1-checkpoint"},
    "spec": {
        "template": {
            "spec": {
                "securityContext": SECURITY,
                "nodeSelector": {"disk": "fast"},
                "serviceAccountName": "writer",
                "containers": [
                    {
                        "name": "driver",
                        "image": "herdkeeper/spark:9",
                        "env": [{"name": "PASSWORD", "value": "hush"}],
                        "securityContext": {"readOnlyRootFilesystem": True},
                        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, {"name": "files", "mountPath": "/checkpoints"}],
                    }
                ],
                "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "files", "persistentVolumeClaim": {"claimName": "checkpoints"}}],
            }
        }
    },
}


def checkpoint(**spec: object) -> Json:
    status = {"phase": "Succeeded", "report": "i/u/report.html", "job": "flights-1-checkpoint"}
    return resource("Checkpoint", "flights-1", {"tablespaceRef": {"name": "flights"}, "destination": PLACE, **spec}, **status)


def test_the_pod_has_what_the_job_had_to_read_the_file_and_no_more() -> None:
    pod = report_pod("report-1", JOB, "checkpoints", "i/u/report.html")
    assert pod is not None
    spec = pod["spec"]
    (reader,) = spec["containers"]
    assert (reader["image"], reader["command"]) == ("herdkeeper/spark:9", ["cat", "/checkpoints/i/u/report.html"])
    assert reader["volumeMounts"] == [{"name": "files", "mountPath": "/checkpoints", "readOnly": True}]
    assert (spec["securityContext"], spec["nodeSelector"]) == (SECURITY, {"disk": "fast"})
    assert spec["volumes"] == [{"name": "files", "persistentVolumeClaim": {"claimName": "checkpoints"}}]
    assert not {"env", "envFrom"} & set(reader)
    assert "serviceAccountName" not in spec
    assert spec["automountServiceAccountToken"] is False
    assert report_pod("report-1", JOB, "another", "i/u/report.html") is None


def ending(cluster: PlayedCluster, phase: str):
    """The pod ends while the command waits."""

    def pause(_: float) -> None:
        pod = next(item for item in cluster.documents if item["kind"] == "Pod")
        pod["status"] = {"phase": phase}
        cluster.texts[(pod["metadata"]["name"], "log")] = ["<html>", "</html>"]

    return pause


def pods(cluster: PlayedCluster) -> list[Json]:
    return [item for item in cluster.documents if item["kind"] == "Pod"]


def test_a_report_is_written_to_a_file_and_the_pod_is_gone(tmp_path: Path) -> None:
    cluster = PlayedCluster([checkpoint(), JOB])
    answer, _ = called(cluster, "report", "ckpt/flights-1", "--file", str(tmp_path / "r.html"), pause=ending(cluster, "Succeeded"))
    assert answer.exit_code == FINE
    assert (tmp_path / "r.html").read_text() == f"{report.LOADS_NOTHING}<html>\n</html>"
    assert pods(cluster) == []


def test_without_a_file_it_is_opened_in_a_browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened: list[str] = []
    monkeypatch.setattr(report.webbrowser, "open", lambda address: opened.append(address) or True)
    for name, number in (("report.html", 1), ("setup.hta", 2)):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.setattr(report.tempfile, "mkdtemp", lambda prefix, folder=folder: str(folder))
        item = checkpoint()
        item["status"]["report"] = f"i/u/{name}"
        cluster = PlayedCluster([item, JOB])
        answer, _ = called(cluster, "report", "ckpt/flights-1", pause=ending(cluster, "Succeeded"))
        assert opened.pop() == (folder / "report.html").as_uri(), "no name in a status makes it a program"
        assert "was opened in the browser" in answer.text


@pytest.mark.parametrize(("name", "why"), [("mine", "the file exists; name another"), ("no/r.html", "there is no folder ")])
def test_a_file_that_can_not_be_made_is_told_before_there_is_a_pod(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "mine").write_text("mine")
    cluster = PlayedCluster([checkpoint(), JOB])
    with pytest.raises(BadInputError, match=f"--file {tmp_path / name}: {why}"):
        called(cluster, "report", "ckpt/flights-1", "--file", str(tmp_path / name), pause=ending(cluster, "Succeeded"))
    assert (cluster.writes, (tmp_path / "mine").read_text()) == ([], "mine")


def test_a_file_that_is_made_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    cluster = PlayedCluster([checkpoint(), JOB])
    ends = ending(cluster, "Succeeded")

    def pause(seconds: float) -> None:
        (tmp_path / "r.html").write_text("mine")
        ends(seconds)

    with pytest.raises(BadInputError, match=r"it can't be written \(File exists\)"):
        called(cluster, "report", "ckpt/flights-1", "--file", str(tmp_path / "r.html"), pause=pause)
    assert (pods(cluster), (tmp_path / "r.html").read_text()) == ([], "mine")


def test_without_a_folder_for_temporary_files_a_file_is_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator's pod has none that it may write to."""

    def refuse(prefix: str) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(report.tempfile, "mkdtemp", refuse)
    cluster = PlayedCluster([checkpoint(), JOB])
    with pytest.raises(BadInputError, match=r"No usable temporary directory found\); name a file with --file"):
        called(cluster, "report", "ckpt/flights-1", pause=ending(cluster, "Succeeded"))
    assert pods(cluster) == []


def test_a_pod_that_fails_or_never_starts_says_why_and_is_gone() -> None:
    for pause in (None, "Failed"):
        cluster = PlayedCluster([checkpoint(), JOB])
        play = ending(cluster, pause) if pause else lambda _: None
        with pytest.raises(ClusterError, match="the report could not be read: "):  # no text where a document is asked for
            called(cluster, "report", "ckpt/flights-1", "--timeout", "2", pause=play)
        assert pods(cluster) == []


class EnoughError(Exception):
    """Somebody has enough of waiting."""


def test_the_pod_is_gone_also_when_the_command_is_interrupted() -> None:
    def pause(_: float) -> None:
        raise EnoughError

    cluster = PlayedCluster([checkpoint(), JOB])
    with pytest.raises(EnoughError):
        called(cluster, "report", "ckpt/flights-1", pause=pause)
    assert pods(cluster) == []


@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGHUP], ids=["ended", "its terminal is closed"])
def test_the_pod_is_gone_also_when_the_process_is_to_end(ended_by: signal.Signals) -> None:
    cluster = PlayedCluster([checkpoint(), JOB])
    before = signal.signal(ended_by, signal.SIG_IGN)  # or it would end the tests
    try:
        with pytest.raises(KeyboardInterrupt):
            called(cluster, "report", "ckpt/flights-1", "--timeout", "3", pause=lambda _: signal.raise_signal(ended_by))
    finally:
        signal.signal(ended_by, before)
    assert pods(cluster) == []


def test_a_dry_run_makes_no_pod() -> None:
    cluster = PlayedCluster([checkpoint(), JOB])
    assert called(cluster, "report", "ckpt/flights-1", "--dry-run")[0].exit_code == FINE
    assert pods(cluster) == []


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({**checkpoint(), "status": {"message": "it can't be written"}}, "ckpt/flights-1 has no report: it can't be written"),
        (checkpoint(destination={"objectStore": {"uri": "s3://b/p"}}), "fetch s3://b/p/i/u/report.html with a client of that store"),
        (checkpoint(), "the Job of ckpt/flights-1 is gone"),
    ],
)
def test_a_report_that_can_not_be_had_is_told_with_the_reason(item: Json, message: str) -> None:
    with pytest.raises(ClusterError) as refused:
        called(PlayedCluster([item]), "report", "ckpt/flights-1")
    assert message in str(refused.value)


def test_what_has_no_report_is_named() -> None:
    with pytest.raises(BadInputError, match="RUN ts/flights: a Tablespace has no report; name a Checkpoint or ReplicationAudit"):
        called(PlayedCluster([resource("Tablespace", "flights")]), "report", "ts/flights")
