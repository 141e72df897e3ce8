"""Draining bookies on a real API server: fewer of them, one in the middle, taken back, away, and what is never done."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from kubernetes.dynamic import DynamicClient
from serving_bookies import KIND, Bookies
from stage import CLAIM, Stage, nothing_written

from herdkeeper.clients.paged_reads import PagedRead, PagedReads, Question
from herdkeeper.clients.zookeeper_member import Wake
from herdkeeper.codecs.bookkeeper.share import Place, read_record
from herdkeeper.shared import names
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

DRAINING = "herdkeeper.io/draining"


class HeldReads(PagedReads):
    """Reads that go on only while `may_read` is set."""

    def __init__(self, now: Callable[[], float], wait_seconds: float) -> None:
        super().__init__(now, wait_seconds)
        self.may_read = threading.Event()

    def ask(self, place: str, question: Question, begin: Callable[[], PagedRead], wake: Wake | None = None) -> str | None:
        return super().ask(place, question, lambda: HeldRead(begin(), self.may_read), wake)


@dataclass(frozen=True)
class HeldRead:
    """A read whose pages wait for `may_read`."""

    read: PagedRead
    may_read: threading.Event

    @property
    def progress(self) -> str:
        return self.read.progress

    def read_page(self) -> Any:
        self.may_read.wait()
        return self.read.read_page()


@pytest.fixture
def bookies(dynamic: DynamicClient, namespace: str) -> Bookies:
    return Bookies(Stage(dynamic, namespace))


def test_a_lowered_number_drains_the_highest_bookie_to_the_end(bookies: Bookies) -> None:
    four, zero = bookies.id(4), bookies.id(0)
    bookies.ledgers.put(7, (0, bookies.ids(1, 2, 4)), last_entry_id=99)
    bookies.ledgers.put(8, (0, bookies.ids(0, 1, 2)), last_entry_id=9)
    bookies.want(bookies=4)
    assert (bookies.registered(4), bookies.registered(3)) == ("ro", "rw")
    token = bookies.stage.found("Secret", "bk-bookie-token")["data"]["token"]
    assert bookies.stage.bookies.tokens == {base64.b64decode(token).decode()}
    record = bookies.stage.found("ConfigMap", "bk-bookie-4-drain-1")["data"]
    assert read_record(record["record"]) == {7: (Place(0, 2),)}
    job = bookies.stage.found("Job", "bk-bookie-4-drain-1")["spec"]["template"]["spec"]
    assert job["initContainers"][0]["args"][:2] == ["move-recorded", four]
    assert bookies.waits() == ("True", "MovingLedgers")
    assert (bookies.drain_of(4)["ledgers"], bookies.drain_of(4)["bytes"]) == (1, 10_000)
    bookies.ledgers.move(four, zero)
    bookies.settle()
    assert bookies.replicas(4) == 1, "what moved is not read back yet"
    bookies.end_job("bk-bookie-4-drain-1")
    assert bookies.replicas(4) == 0
    assert bookies.waits() == ("True", "PodStopping")
    bookies.leave(4)
    assert bookies.stage.found("Job", "bk-bookie-4-retire")["spec"]["template"]["spec"]["containers"][0]["args"] == [
        *("shell", "decommissionbookie", "-bookieid", four),
    ]
    assert 4 in bookies.claims()
    bookies.retire(4)
    bookies.stage.let_claims_go()
    bookies.settle()
    assert bookies.claims() == {0, 1, 2, 3}
    assert [key for key in bookies.stage.made() if "bookie-4" in key[1]] == []
    assert (bookies.status()["nextBookie"], bookies.waits()) == (5, ("False", "Settled"))
    assert bookies.stage.condition(KIND, "bk") == ("True", "Ready")
    bookies.want(bookies=5)
    assert bookies.claims() == {0, 1, 2, 3, 5}, "its number is not given again"


def test_a_drained_cluster_gets_no_write(bookies: Bookies) -> None:
    bookies.want(bookies=4)
    bookies.leave(4)
    bookies.retire(4)
    bookies.stage.let_claims_go()
    bookies.settle()
    with nothing_written(bookies.stage):
        result = bookies.stage.reconcile(KIND, "bk")
    assert result.requeue_after_seconds is None


def test_a_bookie_in_the_middle_leaves_after_another_has_come(bookies: Bookies) -> None:
    bookies.ledgers.put(7, (0, bookies.ids(0, 1, 2, 3)), last_entry_id=9)
    bookies.want(drain=[1])
    assert bookies.claims() == {0, 1, 2, 3, 4, 5}
    assert (bookies.registered(1), bookies.drain_of(1)["message"].split(":")[0]) == ("rw", "TooFewBookies")
    bookies.stage.serve_bookie(bookies.named, 5)
    bookies.settle()
    assert bookies.registered(1) == "ro"
    bookies.ledgers.move(bookies.id(1), bookies.id(5))
    bookies.end_job("bk-bookie-1-drain-1")
    bookies.leave(1)
    bookies.retire(1)
    bookies.stage.let_claims_go()
    bookies.settle()
    assert bookies.claims() == {0, 2, 3, 4, 5}
    assert bookies.stage.condition(KIND, "bk") == ("True", "Ready")


def test_an_open_ledger_stays_until_its_writer_turned_away_and_is_named_with_its_tablespace(bookies: Bookies) -> None:
    bookies.ledgers.put(9, (0, bookies.ids(2, 3, 4)), tablespace="flights")
    bookies.want(bookies=4)
    assert bookies.waits() == ("True", "OpenLedgers")
    assert "9 (tablespace flights)" in bookies.drain_of(4)["message"]
    assert bookies.stage.live("Job", "bk-bookie-4-drain-1") is None
    bookies.ledgers.put(9, (0, bookies.ids(2, 3, 4)), (5, bookies.ids(2, 3, 0)), tablespace="flights")
    bookies.settle()
    assert bookies.stage.found("ConfigMap", "bk-bookie-4-drain-1")["data"]["open"] == "9\n"
    bookies.ledgers.put(9, (0, bookies.ids(2, 3, 1)), (5, bookies.ids(2, 3, 0)), tablespace="flights")
    bookies.end_job("bk-bookie-4-drain-1")
    assert bookies.replicas(4) == 0


def test_the_node_that_writes_a_tablespace_is_asked_to_close_its_ledger(bookies: Bookies) -> None:
    stage = bookies.stage
    stage.declare("HerdDBCluster", "db", {"bookKeeperRef": {"name": "bk"}})
    secret = {"metadata": {"name": "db-herddb-credentials"}, "stringData": {"token": "a-token"}}
    stage.of("Secret").create(body={"apiVersion": "v1", "kind": "Secret", **secret}, namespace=stage.namespace)
    stage.nodes.tokens = {"a-token"}
    labels = names.labels(names.HERDDB_COMPONENT, "HerdDBCluster", "db")
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "herddb", "image": "herddb:1"}]}}
    spec = {"serviceName": "db-herddb-nodes", "selector": {"matchLabels": labels}, "template": template}
    nodes = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db-herddb"}, "spec": spec}
    stage.of("StatefulSet").create(body=nodes, namespace=stage.namespace)
    stage.serve("db-herddb")
    bookies.ledgers.put(9, (0, bookies.ids(2, 3, 4)), tablespace="flights")
    stage.patch(KIND, "bk", {"spec": {"bookies": 4}})
    for _ in range(6):
        stage.reconcile(KIND, "bk")
        if stage.nodes.orders:
            break
    node = f"http://db-herddb-0.db-herddb-nodes.{stage.namespace}.svc:9845"
    assert stage.nodes.orders == [f"{node}/tablespaces/flights/close-ledger?ledger=9"]
    bookies.ledgers.put(9, (0, bookies.ids(2, 3, 4)), last_entry_id=0, tablespace="flights")
    bookies.settle()
    assert bookies.waits() == ("True", "MovingLedgers")


def test_a_further_round_moves_what_was_open_before(bookies: Bookies) -> None:
    bookies.ledgers.put(7, (0, bookies.ids(1, 2, 4)), last_entry_id=9)
    bookies.ledgers.put(9, (0, bookies.ids(2, 3, 4)))
    bookies.want(bookies=4)
    bookies.ledgers.move(bookies.id(4), bookies.id(0))
    bookies.end_job("bk-bookie-4-drain-1")
    assert bookies.waits() == ("True", "OpenLedgers")
    bookies.ledgers.put(9, (0, bookies.ids(2, 3, 4)), last_entry_id=4)
    bookies.settle()
    assert read_record(bookies.stage.found("ConfigMap", "bk-bookie-4-drain-2")["data"]["record"]) == {9: (Place(0, 2),)}
    assert bookies.replicas(4) == 1


def test_what_comes_to_the_bookie_during_a_round_is_for_the_next_one(bookies: Bookies) -> None:
    bookies.ledgers.put(7, (0, bookies.ids(1, 2, 4)), last_entry_id=99)
    bookies.want(bookies=4)
    bookies.ledgers.put(8, (0, bookies.ids(1, 2, 4)), last_entry_id=9)
    bookies.ledgers.move(bookies.id(4), bookies.id(0), ledger_id=7)
    bookies.end_job("bk-bookie-4-drain-1")
    record = bookies.stage.found("ConfigMap", "bk-bookie-4-drain-2")["data"]["record"]
    assert read_record(record) == {8: (Place(0, 2),)}
    bookies.ledgers.move(bookies.id(4), bookies.id(0))
    bookies.settle()
    assert bookies.replicas(4) == 1, "what came is not read back yet"
    bookies.end_job("bk-bookie-4-drain-2")
    assert bookies.replicas(4) == 0


def test_a_drain_ends_though_somebody_deletes_the_jobs_that_have_ended(bookies: Bookies) -> None:
    bookies.ledgers.put(7, (0, bookies.ids(1, 2, 4)), last_entry_id=99)
    bookies.want(bookies=4)
    bookies.ledgers.move(bookies.id(4), bookies.id(0))
    bookies.end_job("bk-bookie-4-drain-1")
    bookies.leave(4)
    bookies.stage.delete("Job", "bk-bookie-4-drain-1")
    bookies.retire(4)
    assert 4 in bookies.claims(), "the proof is gone"
    bookies.end_job("bk-bookie-4-drain-1")
    bookies.stage.let_claims_go()
    bookies.settle()
    assert bookies.claims() == {0, 1, 2, 3}


def test_a_drain_goes_on_though_somebody_changes_what_its_record_says_of_bytes(bookies: Bookies) -> None:
    bookies.ledgers.put(7, (0, bookies.ids(1, 2, 4)), last_entry_id=99)
    bookies.want(bookies=4)
    bookies.stage.patch("ConfigMap", "bk-bookie-4-drain-1", {"data": {"bytes": "many"}})
    bookies.settle()
    assert bookies.waits() == ("True", "MovingLedgers")


@pytest.mark.parametrize("progress", ["read-only", "moving", "stopped"])
def test_a_drain_can_be_taken_back(bookies: Bookies, progress: str) -> None:
    bookies.ledgers.put(9, (0, bookies.ids(2, 3, 4)), last_entry_id=None if progress == "read-only" else 9)
    bookies.want(bookies=4)
    assert bookies.registered(4) == "ro"
    if progress == "stopped":
        bookies.ledgers.move(bookies.id(4), bookies.id(0))
        bookies.end_job("bk-bookie-4-drain-1")
        assert bookies.replicas(4) == 0
        bookies.vanish(4)
    bookies.want(bookies=5)
    assert bookies.replicas(4) == 1
    if progress == "stopped":
        bookies.come_back(4, "ro")
    assert bookies.registered(4) == "rw"
    assert DRAINING not in bookies.stage.found(CLAIM, "bk-bookie-4-journal")["metadata"]["annotations"]
    unproven = [("ConfigMap", "bk-bookie-4-drain-1")] if progress == "moving" else []
    assert [key for key in bookies.stage.made() if "drain" in key[1]] == unproven
    assert bookies.stage.condition(KIND, "bk") == ("True", "Ready")


@pytest.mark.parametrize("ended", ["Failed", None])
def test_what_moved_before_a_drain_was_taken_back_is_read_back_by_the_next_one(bookies: Bookies, ended: str | None) -> None:
    bookies.ledgers.put(7, (0, bookies.ids(1, 2, 4)), last_entry_id=99)
    bookies.want(bookies=4)
    bookies.ledgers.move(bookies.id(4), bookies.id(0))
    if ended is not None:
        bookies.end_job("bk-bookie-4-drain-1", ended)
    bookies.want(bookies=5)
    assert (bookies.registered(4), bookies.stage.live("Job", "bk-bookie-4-drain-1")) == ("rw", None)
    bookies.want(bookies=4)
    record = bookies.stage.found("ConfigMap", "bk-bookie-4-drain-1")["data"]
    assert read_record(record["record"]) == {7: (Place(0, 2),)}
    assert bookies.replicas(4) == 1, "no metadata names it any more, but its copies were not read back"
    assert "secondsLeft" not in bookies.drain_of(4), "the record is as old as the earlier drain"
    bookies.end_job("bk-bookie-4-drain-1")
    assert bookies.replicas(4) == 0


def test_an_open_ledger_is_not_for_a_round_of_a_drain_that_was_taken_back(bookies: Bookies) -> None:
    """Its writer may have returned to the bookie, and would be fenced."""
    bookies.ledgers.put(9, (0, bookies.ids(2, 3, 4)), (5, bookies.ids(2, 3, 0)), tablespace="flights")
    bookies.want(bookies=4)
    assert bookies.stage.found("ConfigMap", "bk-bookie-4-drain-1")["data"]["open"] == "9\n"
    bookies.want(bookies=5)
    kept = bookies.stage.found("ConfigMap", "bk-bookie-4-drain-1")["data"]
    assert (kept["open"], read_record(kept["record"])) == ("", {9: (Place(0, 2),)})


def test_a_bookie_that_is_read_only_by_itself_is_left_so(bookies: Bookies) -> None:
    bookies.stage.bookies.set_read_only(bookies.id(4), "", True, "")  # a full disk
    bookies.settle()
    assert bookies.registered(4) == "ro"


def test_taken_back_too_late_the_bookie_goes_and_another_comes(bookies: Bookies) -> None:
    bookies.want(bookies=4)
    bookies.leave(4)
    assert bookies.stage.live("Job", "bk-bookie-4-retire") is not None
    bookies.want(bookies=5)
    assert (bookies.replicas(4), bookies.claims()) == (0, {0, 1, 2, 3, 4, 5})
    bookies.retire(4)
    bookies.stage.let_claims_go()
    bookies.settle()
    assert bookies.claims() == {0, 1, 2, 3, 5}


def test_a_bookie_that_is_away_is_never_retired(bookies: Bookies) -> None:
    bookies.ledgers.put(7, (0, bookies.ids(1, 2, 4)), last_entry_id=9)
    bookies.want(bookies=4)
    bookies.leave(4)
    bookies.ledgers.move(bookies.id(4), bookies.id(0))  # by autorecovery
    bookies.end_job("bk-bookie-4-drain-1")
    assert bookies.waits() == ("True", "BookieDown")
    assert (bookies.replicas(4), 4 in bookies.claims()) == (1, True)
    bookies.come_back(4, "ro")
    assert bookies.replicas(4) == 0


def test_a_ledger_that_names_a_stopped_bookie_brings_it_back(bookies: Bookies) -> None:
    bookies.want(bookies=4)
    assert bookies.replicas(4) == 0
    bookies.ledgers.put(9, (0, bookies.ids(2, 3, 4)))
    bookies.leave(4)
    assert bookies.replicas(4) == 1
    assert bookies.stage.live("Job", "bk-bookie-4-retire") is None


@pytest.mark.parametrize("unreadable", [b"nonsense", b"BookieMetadataFormatVersion\t9\n"])
def test_one_ledger_that_cant_be_read_stops_every_drain(bookies: Bookies, unreadable: bytes) -> None:
    bookies.stage.ensemble.put(f"{bookies.named.ledgers_root}/00/0000/L0007", unreadable)
    bookies.want(bookies=4)
    assert bookies.waits() == ("True", "Unreadable")
    assert (bookies.registered(4), bookies.replicas(4)) == ("rw", 1)


@pytest.mark.parametrize("blocker", ["UnderReplicated", "AutorecoveryOff", "TooFewBookies"])
def test_nothing_is_begun_while_something_blocks(bookies: Bookies, blocker: str) -> None:
    root = bookies.named.ledgers_root
    paths = {
        "UnderReplicated": f"{root}/underreplication/ledgers/0000/0000/0000/0001/urL0000000001",
        "AutorecoveryOff": f"{root}/underreplication/disable",
        "TooFewBookies": f"{root}/nothing",
    }
    bookies.stage.ensemble.put(paths[blocker])
    if blocker == "TooFewBookies":
        bookies.ledgers.put(7, (0, bookies.ids(0, 1, 2, 3)), last_entry_id=9)
    bookies.want(bookies=4)
    assert bookies.waits() == ("True", blocker)
    assert bookies.registered(4) == "rw"
    assert DRAINING not in bookies.stage.found(CLAIM, "bk-bookie-4-journal")["metadata"]["annotations"]


def test_a_declared_database_counts_before_it_has_a_ledger(bookies: Bookies) -> None:
    sizes = {"ensembleSize": 4, "writeQuorum": 3, "ackQuorum": 2}
    bookies.stage.declare("HerdDBCluster", "db", {"bookKeeperRef": {"name": "bk"}, "ledgers": sizes})
    bookies.want(bookies=4)
    assert bookies.waits() == ("True", "TooFewBookies")


def test_all_that_leave_are_read_only_before_one_is_emptied_and_then_one_after_the_other(dynamic: DynamicClient, namespace: str) -> None:
    bookies = Bookies(Stage(dynamic, namespace), 6)
    for number in (4, 5):
        bookies.ledgers.put(number, (0, bookies.ids(1, number)), last_entry_id=9)
    bookies.stage.bookies.silent = {bookies.id(4)}
    bookies.stage.patch(KIND, "bk", {"spec": {"bookies": 4}})
    for _ in range(5):
        bookies.stage.reconcile(KIND, "bk")
    assert (bookies.registered(4), bookies.registered(5)) == ("rw", "ro")
    assert [name for kind, name in bookies.stage.made() if kind == "Job"] == []
    bookies.stage.bookies.silent = set()
    bookies.settle()
    assert [name for kind, name in bookies.stage.made() if kind == "Job"] == ["bk-bookie-5-drain-1"]
    bookies.ledgers.move(bookies.id(5), bookies.id(0))
    bookies.end_job("bk-bookie-5-drain-1")
    bookies.leave(5)
    bookies.retire(5)
    bookies.stage.let_claims_go()
    bookies.settle()
    assert [name for kind, name in bookies.stage.made() if kind == "Job"] == ["bk-bookie-4-drain-1"]


def test_a_drain_comes_to_its_end_though_every_scan_outlasts_the_reconcile_that_asks_for_it(bookies: Bookies) -> None:
    seconds, told = [0.0], set[str]()
    stage, scans = bookies.stage, HeldReads(lambda: seconds[0], wait_seconds=0.0)
    stage.scans = scans

    def settle() -> None:
        """Until three looks in a row wrote nothing but how far a scan is."""
        quiet = 0
        for _ in range(60):
            before = stage.versions(), list(stage.bookies.asked)
            seconds[0] += 50.0
            scans.may_read.clear()
            stage.reconcile(KIND, "bk")
            scans.may_read.set()
            told.update(bookie["drain"]["message"] for bookie in bookies.status()["bookies"] if "drain" in bookie)
            wait_for("the end of the scan", lambda: scans._threads == 0 or Pending("it is running"), Limit(60, 0.01))
            quiet = quiet + 1 if (stage.versions(), list(stage.bookies.asked)) == before else 0
            if quiet == 3:
                return

    bookies.settle = settle
    bookies.ledgers.put(7, (0, bookies.ids(1, 2, 4)), last_entry_id=99)
    bookies.want(bookies=4)
    assert bookies.registered(4) == "ro"
    bookies.ledgers.move(bookies.id(4), bookies.id(0))
    bookies.end_job("bk-bookie-4-drain-1")
    assert bookies.replicas(4) == 0
    bookies.leave(4)
    bookies.retire(4)
    stage.let_claims_go()
    settle()
    assert bookies.claims() == {0, 1, 2, 3}
    assert any("the ledgers are being scanned" in message for message in told), told


def test_a_failed_move_is_shown_with_what_its_pod_said(bookies: Bookies) -> None:
    bookies.ledgers.put(7, (0, bookies.ids(1, 2, 4)), last_entry_id=9)
    bookies.want(bookies=4)
    bookies.end_job("bk-bookie-4-drain-1", "Failed")
    assert bookies.waits() == ("True", "DrainFailed")
    assert "delete the Job bk-bookie-4-drain-1 to try again" in bookies.drain_of(4)["message"]
    bookies.stage.delete("Job", "bk-bookie-4-drain-1")
    bookies.settle()
    assert bookies.stage.live("Job", "bk-bookie-4-drain-1") is not None


def test_a_plan_is_shown_and_nothing_is_done(bookies: Bookies) -> None:
    bookies.ledgers.put(7, (0, bookies.ids(1, 2, 4)), last_entry_id=99)
    bookies.stage.patch(KIND, "bk", {"metadata": {"annotations": {"herdkeeper.io/plan": "true"}}, "spec": {"bookies": 4}})
    versions, asked = bookies.stage.versions(), list(bookies.stage.bookies.asked)
    bookies.settle()
    assert (bookies.stage.versions(), bookies.stage.bookies.asked) == (versions, asked)
    assert bookies.waits() == ("False", "Planned")
    steps = bookies.status()["plan"]["steps"]
    assert any(f"copy 1 closed ledger of {bookies.id(4)} (about 10000 bytes)" in step for step in steps), steps
    assert "blockers" not in bookies.status()["plan"] or bookies.status()["plan"]["blockers"] == []
    bookies.stage.patch(KIND, "bk", {"metadata": {"annotations": {"herdkeeper.io/plan": None}}})
    bookies.settle()
    assert "plan" not in bookies.status()
    assert bookies.registered(4) == "ro"


def test_a_plan_names_what_it_would_wait_for(bookies: Bookies) -> None:
    bookies.ledgers.put(7, (0, bookies.ids(0, 1, 2, 3)), last_entry_id=9)
    bookies.stage.patch(KIND, "bk", {"metadata": {"annotations": {"herdkeeper.io/plan": "true"}}, "spec": {"bookies": 4}})
    bookies.settle()
    (blocker,) = bookies.status()["plan"]["blockers"]
    assert blocker.startswith("TooFewBookies: ")


def test_every_kind_shows_its_plan(dynamic: DynamicClient, namespace: str) -> None:
    stage = Stage(dynamic, namespace)
    stage.declare("ZooKeeperCluster", "zk", {"replicas": 3}, {"herdkeeper.io/plan": "true"})
    stage.settle("ZooKeeperCluster", "zk")
    assert stage.made() == {}
    steps = stage.found("ZooKeeperCluster", "zk")["status"]["plan"]["steps"]
    assert "Creating PersistentVolumeClaim data-zk-zookeeper-0" in steps
    assert steps[-2:] == ["Creating StatefulSet zk-zookeeper", "Creating NetworkPolicy zk-zookeeper"]
