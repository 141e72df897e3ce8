"""`kubectl herdkeeper recover`: what is lost for good, which way back there is, and what it does not do while anything is unknown."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from played_cluster import PlayedCluster, called, resource

from herdkeeper.plugin.cluster import ClusterError, ForbiddenError
from herdkeeper.plugin.command import FINE, WRONG, BadInputError
from herdkeeper.plugin.lost_quorum import LOOK, Lost, volume_of

NEWEST = 0x300000002
VOTERS = "".join(f"server.{number + 1}=zk-zookeeper-{number}.x.demo.svc:2888:3888:participant;2181\n" for number in range(3))
EMPTY = f"epoch 0\nmembership zoo.cfg.dynamic.100000001\n{VOTERS}\nend\n"


def holds(epoch: int = 3, version: str = "10000000a") -> str:
    files = "file snapshot.0\nfile log.1\n"
    older = "membership zoo.cfg.dynamic.9\nserver.1=zk-zookeeper-0.x.demo.svc:2888:3888:participant;2181\n\n"
    return f"{files}epoch {epoch}\n{older}membership zoo.cfg.dynamic.{version}\n{VOTERS}\nend\n"


def pod(number: int, **status: object) -> dict:
    metadata = {"name": f"zk-zookeeper-{number}", "uid": f"uid-{number}", "labels": {"app.kubernetes.io/managed-by": "herdkeeper"}}
    return {"kind": "Pod", "metadata": metadata, "spec": {}, "status": {"phase": "Running", **status}}


def claim(number: int, phase: str = "Bound") -> dict:
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": f"data-zk-zookeeper-{number}"}, "spec": {}, "status": {"phase": phase}}


def ensemble(shown: Mapping[int, str], zxids: Mapping[int, int]) -> PlayedCluster:
    """Three members that run; of those that are not in `shown`, the volume can't be read."""
    items = [resource("ZooKeeperCluster", "zk"), resource("BookKeeperCluster", "bk", {"zooKeeperRef": {"name": "zk"}})]
    items += [pod(number) for number in range(3)] + [claim(number) for number in range(3)]
    logs = {
        number: f"INFO FastLeaderElection New election. My id = {number + 1}, proposed zxid=0x{zxids.get(number, 0):x}" for number in shown
    }
    return PlayedCluster(
        items,
        texts={(f"zk-zookeeper-{number}", "log"): ["first", line] for number, line in logs.items()},
        shown={f"zk-zookeeper-{number}": text for number, text in shown.items()},
    )


def lost() -> PlayedCluster:
    return ensemble({0: holds(), 1: EMPTY, 2: EMPTY}, {0: NEWEST})


def test_it_tells_what_is_lost_and_what_each_way_back_loses_and_changes_nothing() -> None:
    cluster = lost()
    answer, _ = called(cluster, "recover", "bkc/bk")
    assert (answer.exit_code, answer.document["state"], cluster.writes) == (WRONG, "Lost", [])
    assert "1 of 3 voters hold data, and 2 are needed" in answer.text
    assert "zk-zookeeper-0: epoch 3, last transaction 0x300000002" in answer.text
    assert "zk-zookeeper-1: its volume is empty" in answer.text
    snapshots, accepting = answer.document["ways"]
    assert "snapshots" in snapshots["way"]
    # another namespace may have a ZooKeeperCluster of that name
    assert accepting["way"].endswith("recover zkc/zk --accept zk-zookeeper-0 --namespace demo")
    assert "ledgers that these made" in accepting["loses"]


def test_an_accepted_member_gets_a_newer_membership_of_itself_and_its_very_pod_is_deleted() -> None:
    cluster = lost()
    answer, _ = called(cluster, "recover", "zkc/zk", "--accept", "zk-zookeeper-0", "--yes")
    assert answer.exit_code == FINE
    checked, (_, container, _, body, _), deletion = cluster.writes
    assert container == "zookeeper"
    assert "mv alone zoo.cfg.dynamic.10000000b" in body["script"]
    assert "echo 'server.1=zk-zookeeper-0.x.demo.svc:2888:3888:participant;2181'" in body["script"]
    assert checked == ("delete", "Pod", "zk-zookeeper-0", {"uid": "uid-0"}, True)
    assert deletion == ("delete", "Pod", "zk-zookeeper-0", {"uid": "uid-0"}, False)


def test_who_may_not_delete_the_pod_leaves_no_membership_on_its_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise ForbiddenError("pods is forbidden")

    cluster = lost()
    monkeypatch.setattr(cluster, "delete", forbidden)
    with pytest.raises(ForbiddenError):
        called(cluster, "recover", "zkc/zk", "--accept", "zk-zookeeper-0", "--yes")
    assert cluster.writes == []


def test_a_pod_that_is_not_deleted_after_all_is_told_with_what_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    def unanswered(*_: object, dry_run: bool = False, **__: object) -> None:
        if not dry_run:
            raise ClusterError("the API server does not answer")

    cluster = lost()
    monkeypatch.setattr(cluster, "delete", unanswered)
    with pytest.raises(ClusterError, match=r"membership of itself alone.*delete this pod"):
        called(cluster, "recover", "zkc/zk", "--accept", "zk-zookeeper-0", "--yes")


def test_a_dry_run_has_the_deletion_checked_and_runs_nothing_in_the_pod() -> None:
    cluster = lost()
    answer, _ = called(cluster, "recover", "zkc/zk", "--accept", "zk-zookeeper-0", "--dry-run")
    assert cluster.writes == [("delete", "Pod", "zk-zookeeper-0", {"uid": "uid-0"}, True)]
    assert "nothing changed" in answer.text
    assert [change["resource"] for change in answer.document["changes"]] == ["Pod/zk-zookeeper-0"] * 2


@pytest.mark.parametrize(("typed", "written"), [("zk\n", 3), ("yes\n", 0)])
def test_on_a_terminal_the_name_of_the_resource_is_typed(monkeypatch: pytest.MonkeyPatch, typed: str, written: int) -> None:
    terminal = io.StringIO(typed)
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdin", terminal)
    cluster = lost()
    if written:
        called(cluster, "recover", "zkc/zk", "--accept", "zk-zookeeper-0")
    else:
        with pytest.raises(BadInputError, match="another name"):
            called(cluster, "recover", "zkc/zk", "--accept", "zk-zookeeper-0")
    assert len(cluster.writes) == written


def test_without_a_terminal_it_wants_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("zk\n"))
    with pytest.raises(BadInputError, match="--yes"):
        called(lost(), "recover", "zkc/zk", "--accept", "zk-zookeeper-0")


def test_what_changes_while_a_person_types_is_not_overlooked(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = lost()

    def typing(_: object, name: str) -> None:
        cluster.shown[f"{name}-zookeeper-1"] = holds()

    monkeypatch.setattr("herdkeeper.plugin.commands.recover._confirm", typing)
    with pytest.raises(ClusterError, match="no longer as they were shown"):
        called(cluster, "recover", "zkc/zk", "--accept", "zk-zookeeper-0")
    assert cluster.writes == []


def test_a_volume_that_cannot_be_read_is_not_empty(tmp_path: Path) -> None:
    script = LOOK.replace("/data", str(tmp_path)).replace("/config", str(tmp_path / "none"))

    def look() -> subprocess.CompletedProcess[str]:
        return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)

    assert isinstance(volume_of(look().stdout, ()), Lost)
    (tmp_path / "store").write_text("like a disk that fails: no folder can be listed here")
    assert look().returncode != 0
    assert not isinstance(volume_of(look().stdout, ()), Lost)


@pytest.mark.parametrize("unread", ["not to the end", "no snapshot", "no membership"])
def test_a_volume_of_which_something_is_unknown_blocks(unread: str) -> None:
    shown = {
        "not to the end": "file snapshot.0\n",
        "no snapshot": "file log.1\nepoch 3\nend\n",
        "no membership": "file snapshot.0\nepoch 3\nend\n",
    }
    cluster = ensemble({0: holds(), 1: EMPTY, 2: shown[unread]}, {0: NEWEST})
    assert called(cluster, "recover", "zkc/zk")[0].document["state"] == "Unknown"
    with pytest.raises(ClusterError, match="nothing can be accepted"):
        called(cluster, "recover", "zkc/zk", "--accept", "zk-zookeeper-0", "--yes")
    assert cluster.writes == []


def test_a_member_whose_pod_does_not_run_is_unknown_until_its_claim_is_gone() -> None:
    cluster = ensemble({0: holds(), 1: EMPTY}, {0: NEWEST})
    cluster.documents = [item for item in cluster.documents if item["metadata"]["name"] != "zk-zookeeper-2"]
    assert called(cluster, "recover", "zkc/zk")[0].document["state"] == "Unknown"
    cluster.documents.append(pod(2, phase="Pending"))
    cluster.documents = [item for item in cluster.documents if item["metadata"]["name"] != "data-zk-zookeeper-2"]
    assert called(cluster, "recover", "zkc/zk")[0].document["state"] == "Unknown"
    cluster.documents.append(claim(2, "Pending"))
    assert called(cluster, "recover", "zkc/zk")[0].document["state"] == "Lost"
    cluster.documents = [item for item in cluster.documents if item["metadata"]["name"] not in ("zk-zookeeper-2", "data-zk-zookeeper-2")]
    assert called(cluster, "recover", "zkc/zk")[0].document["state"] == "Lost"


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("dataSource", {"kind": "VolumeSnapshot", "name": "of-yesterday"}, "VolumeSnapshot of-yesterday"),
        ("dataSourceRef", {"kind": "VolumeSnapshot", "name": "of-yesterday"}, "VolumeSnapshot of-yesterday"),
        ("volumeName", "the-old-disk", "the volume the-old-disk"),
    ],
)
def test_a_claim_that_waits_for_a_volume_that_is_brought_back_is_not_lost(field: str, value: object, told: str) -> None:
    cluster = lost()
    cluster.documents = [item for item in cluster.documents if item["metadata"]["name"] not in ("zk-zookeeper-2", "data-zk-zookeeper-2")]
    waits = claim(2, "Pending")
    waits["spec"][field] = value
    cluster.documents += [pod(2, phase="Pending"), waits]
    answer, _ = called(cluster, "recover", "zkc/zk")
    assert answer.document["state"] == "Unknown"
    assert told in answer.text


def test_a_member_that_cannot_be_read_may_know_of_newer_voters_and_blocks() -> None:
    cluster = lost()
    cluster.documents += [pod(3), claim(3)]
    answer, _ = called(cluster, "recover", "zkc/zk")
    assert answer.document["state"] == "Unknown"
    assert "zk-zookeeper-3" in answer.text
    with pytest.raises(ClusterError, match="nothing can be accepted"):
        called(cluster, "recover", "zkc/zk", "--accept", "zk-zookeeper-0", "--yes")
    assert cluster.writes == []


def test_the_volume_of_a_member_that_has_left_need_not_be_read() -> None:
    """It has no pod any more, so nobody can read it: `recover` would never come to an end."""
    kept = claim(3)
    kept["metadata"]["annotations"] = {"herdkeeper.io/founded": "left"}
    cluster = lost()
    cluster.documents.append(kept)
    cluster.documents[0]["spec"]["replicas"] = 3
    assert called(cluster, "recover", "zkc/zk")[0].document["state"] == "Lost"
    cluster.documents[0]["spec"]["replicas"] = 4  # it is to come back, and may have joined already
    assert called(cluster, "recover", "zkc/zk")[0].document["state"] == "Unknown"


def test_a_quorum_that_serves_or_can_start_again_is_not_lost() -> None:
    cluster = ensemble({0: holds(), 1: holds(), 2: EMPTY}, {})
    answer, _ = called(cluster, "recover", "zkc/zk")
    assert (answer.document["state"], answer.exit_code) == ("StartsAgain", WRONG)
    cluster.documents[2] = pod(0, conditions=[{"type": "Ready", "status": "True"}])
    answer, _ = called(cluster, "recover", "zkc/zk")
    assert (answer.document["state"], answer.exit_code) == ("Serves", FINE)
    with pytest.raises(ClusterError, match="nothing can be accepted"):
        called(cluster, "recover", "zkc/zk", "--accept", "zk-zookeeper-0", "--yes")


def five(*held: str) -> PlayedCluster:
    """Two of five voters hold something."""
    more = "".join(f"server.{number + 1}=zk-zookeeper-{number}.x.demo.svc:2888:3888:participant;2181\n" for number in range(3, 5))
    shown = {number: text.replace(VOTERS, VOTERS + more) for number, text in enumerate((*held, EMPTY))}
    return ensemble(shown, {0: NEWEST, 1: NEWEST + 7})


def test_of_several_members_only_the_one_that_an_election_would_choose_is_accepted() -> None:
    newer = five(holds(epoch=4), holds(epoch=3))
    with pytest.raises(BadInputError, match=r"zk-zookeeper-0 has the newest data that is left .*; name that one"):
        called(newer, "recover", "zkc/zk", "--accept", "zk-zookeeper-1", "--yes")
    assert "--accept zk-zookeeper-0" in called(newer, "recover", "zkc/zk")[0].text
    assert "--accept zk-zookeeper-1" in called(five(holds(), holds()), "recover", "zkc/zk")[0].text


def test_of_several_members_each_must_tell_its_last_transaction() -> None:
    cluster = five(holds(), holds())
    cluster.texts[("zk-zookeeper-1", "log")] = ["the election was long ago"]
    answer, _ = called(cluster, "recover", "zkc/zk")
    assert answer.document["state"] == "Unknown"
    assert "delete the pod, and its new log will" in answer.text


def test_without_any_data_only_snapshots_help() -> None:
    answer, _ = called(ensemble(dict.fromkeys(range(3), EMPTY), {}), "recover", "zkc/zk")
    assert answer.document["state"] == "NothingLeft"
    (way,) = answer.document["ways"]
    assert "snapshots" in way["way"]


@pytest.mark.parametrize(("mark", "value"), [("paused", "true"), ("paused", "yes"), ("plan", "True")])
def test_a_paused_ensemble_is_resumed_first(mark: str, value: str) -> None:
    cluster = lost()
    cluster.documents[0]["metadata"]["annotations"] = {f"herdkeeper.io/{mark}": value}
    with pytest.raises(ClusterError, match="resume it first"):
        called(cluster, "recover", "zkc/zk", "--accept", "zk-zookeeper-0", "--yes")


def test_a_stack_on_another_zookeeper_is_not_its_business() -> None:
    cluster = PlayedCluster([resource("BookKeeperCluster", "bk", {"zooKeeperAddress": "elsewhere:2181"})])
    with pytest.raises(BadInputError, match="no ZooKeeperCluster; recover it by its own tools"):
        called(cluster, "recover", "bkc/bk")
