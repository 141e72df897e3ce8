"""The operator's process may die after any single write, to Kubernetes or to ZooKeeper: its successor ends where it would have ended."""

from __future__ import annotations

import datetime
import json
import re
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest import mock

import pytest
from kubernetes.dynamic import DynamicClient
from played_members import PlayedMembers
from serving_bookies import Bookies
from sql_database import INSTANCE, serving_database
from stage import ZOOKEEPER_ADDRESS, Json, Stage
from test_reconcile_checkpoint_removal import CLAIM, made
from test_reconcile_deletion import database
from test_reconcile_restore import create, end_job, example, with_stack

from herdkeeper.codecs.herddb.tablespace import TablespaceRecord, decode_tablespace, encode_tablespace, tablespace_path
from herdkeeper.engine.result import Outcome
from herdkeeper.protocol.job_summary import AuditSummary, CheckpointSummary, JobOutcome, RestoreSummary
from herdkeeper.protocol.log_archive import ArchivedRange, ArchiveProgress, archive_progress_path, encode_archive_progress
from herdkeeper.shared import names
from herdkeeper.shared.names import BookKeeperNames, HerdDBNames, ObjectKey
from herdkeeper.shared.time import text_of
from herdkeeper.zookeeper import authority_roll

CHECKPOINT = {"tablespaceRef": {"name": "flights"}, "destination": {"persistentVolumeClaim": {"claimName": "checkpoints"}}}
HOUR = datetime.timedelta(hours=1)
NIGHTS = [datetime.datetime(2100, 1, day, 3, tzinfo=datetime.UTC) for day in range(1, 4)]
MADE_UP = "0b9cbd6c-3a44-4a8e-8d4a-1a7b7c1f0f5e"
VOLATILE = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "clusterIP", "clusterIPs", "lastTransitionTime")

RANDOM = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "uuid"),
    (re.compile(r"(bk-bookie-\d+)-[0-9a-f]{10}\b"), r"\1-token"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "time"),
    (re.compile(r"\d+ \d \* \* \d \(UTC\)"), "some night"),
    (re.compile(r'\\"currentAt\\":\d+'), r'\\"currentAt\\":time'),
    (re.compile(r"(?<![0-9a-f])[0-9a-f]{64}\b"), "hash"),
)
"""In a text of JSON, where a line's end is an escaped n and quotes have a backslash."""


class Died(BaseException):
    """The process is gone."""


class Over(Exception):  # noqa: N818 - an end, not a fault
    """The rest of a story has nothing to tell."""


class Process:
    """Stands between the operator and what it writes to, counts the writes of a scene, and dies after the `last` one.

    Events are not counted: nothing ever reads one, so a process that died after an event left what it left before.
    """

    def __init__(self, client: DynamicClient, last: int | None = None) -> None:
        self.resources = client.resources
        self._client = client
        self._last = last
        self.writes = 0

    def request(self, verb: str, path: str, **arguments: Any) -> Any:
        """The dynamic client's own call."""
        answer = self._client.request(verb, path, **arguments)
        if verb != "get" and "/events" not in path:
            self.wrote(path)
        return answer

    def wrote(self, what: str) -> None:
        """One more write is done."""
        self.writes += 1
        if self.writes == self._last:
            raise Died(f"after write {self.writes}: {what}")


class Run:
    """One story on a namespace of its own, in scenes; in each of them the process dies once, after the `dies_after`th write.

    A scene ends where nothing is written any more. `undisturbed` is the same story without a death. A run that has its picture again at the
    end of a scene is as good as undisturbed for the next one. So one run tells of a death in each. It is over when no later scene has that
    many writes.
    """

    def __init__(self, dynamic: DynamicClient, undisturbed: Run | None = None, dies_after: int = 0) -> None:
        name = f"killed-{uuid.uuid4().hex[:12]}"
        dynamic.resources.get(api_version="v1", kind="Namespace").create(body={"metadata": {"name": name}})
        self.stage = Stage(dynamic, name)
        self.undisturbed = undisturbed
        self.dies_after = dies_after
        self.pictures: list[Json] = []
        self.writes: list[int] = []
        self.deaths = 0

    def settle(self, kind: str, name: str, now: datetime.datetime | None = None) -> None:
        """A scene: reconcile until nothing is written any more, by the next process when the first one dies. `now` is another time than the
        present."""

        def settled(process: Process) -> bool:
            before, clients = process.writes, self.stage.clients(process)
            if now is None:
                self.stage.reconcile(kind, name, clients)
            else:
                self.stage.reconcile_at(now, kind, name, clients)
            return process.writes == before

        self._scene(f"{kind} {name} is settled", settled)

    def delete(self, kind: str, name: str) -> None:
        """A scene: delete a resource, and reconcile until it is gone."""
        self.stage.delete(kind, name)

        def gone(process: Process) -> bool:
            self.stage.let_claims_go()
            return self.stage.reconcile(kind, name, self.stage.clients(process)).outcome is Outcome.GONE

        self._scene(f"{kind} {name} is gone", gone)

    def _scene(self, what: str, ended: Callable[[Process], bool]) -> None:
        process = Process(self.stage.dynamic, self.dies_after or None)
        self.stage.ensemble.written = self.stage.bookies.written = self.stage.nodes.written = process.wrote
        died: Died | None = None
        for _ in range(40):
            try:
                if ended(process):
                    break
            except Died as error:
                assert died is None, "a process dies once"
                died = error
        else:
            raise AssertionError(f"it is not true after 40 reconciles that {what}; {died}")
        self._end(process, what, died)

    def one_scene(self, kind: str, name: str, part: Callable[[Callable[[], None]], None]) -> None:
        """A scene of several steps, which may be taken at another pace after a death. `part` gets what reconciles to a standstill."""
        process = Process(self.stage.dynamic, self.dies_after or None)
        self.stage.ensemble.written = process.wrote
        deaths: list[Died] = []

        def settle() -> None:
            for _ in range(40):
                before = process.writes
                try:
                    self.stage.reconcile(kind, name, self.stage.clients(process))
                except Died as error:
                    assert not deaths, "a process dies once"
                    deaths.append(error)
                    continue
                if process.writes == before:
                    return
            raise AssertionError(f"{kind} {name} is still written to after 40 reconciles; {deaths}")

        part(settle)
        self._end(process, f"{kind} {name} has changed", deaths[0] if deaths else None)

    def _end(self, process: Process, what: str, died: Died | None) -> None:
        self.stage.ensemble.written = self.stage.bookies.written = self.stage.nodes.written = lambda _: None
        self.writes.append(process.writes)
        made = self.stage.made() if died is not None or self.undisturbed is None else None
        self.pictures.append({} if made is None else picture(self.stage, made))
        if self.undisturbed is not None:
            self._compare(self.undisturbed, f"{what}; {died}", made)

    def _compare(self, undisturbed: Run, what: str, made: dict[tuple[str, str], Json] | None) -> None:
        """`made` is what is there after a death."""
        scene = len(self.writes)
        if made is not None:
            self.deaths += 1
            assert self.pictures[-1] == undisturbed.pictures[scene - 1], what
            assert set(identities(self.stage, made).values()) <= {1}, what
        if max(undisturbed.writes[scene:], default=0) < self.dies_after:
            raise Over


def zookeeper_story(run: Run) -> None:
    """Three members are made, and founded."""
    run.stage.declare("ZooKeeperCluster", "zk", {"replicas": 3})
    run.settle("ZooKeeperCluster", "zk")
    PlayedMembers(run.stage, "zk").turn()
    run.settle("ZooKeeperCluster", "zk")


def certificates_story(run: Run) -> None:
    """A member and its certificates are made, one of them anew, and other authorities take over in three steps."""
    stage, members = run.stage, PlayedMembers(run.stage, "zk", leader=0)
    stage.declare("ZooKeeperCluster", "zk", {"replicas": 1, "security": {"mode": "TLS"}})
    run.settle("ZooKeeperCluster", "zk")
    members.turn()
    run.settle("ZooKeeperCluster", "zk")
    stage.delete("Secret", "zk-zookeeper-clients")
    run.settle("ZooKeeperCluster", "zk")
    stage.patch("ZooKeeperCluster", "zk", {"metadata": {"annotations": {names.ROLL_AUTHORITIES_ANNOTATION: "now"}}})

    def roll(settle: Callable[[], None]) -> None:
        for _ in range(12):
            settle()
            members.turn()
            authorities = [stage.found("Secret", f"zk-zookeeper-{which}authority")["data"] for which in ("", "quorum-")]
            if all(held.keys() == {"generation", "signing.crt", "signing.key"} for held in authorities):
                return
        raise AssertionError("the authorities are not rolled after 12 turns")

    with mock.patch.object(authority_roll, "TIME_TO_LOAD", datetime.timedelta(0)):  # no kubelet is played
        run.one_scene("ZooKeeperCluster", "zk", roll)


def members_story(run: Run) -> None:
    """A single member becomes three, and three become one, which leads. Only the writes of the changes count."""
    stage, members = run.stage, PlayedMembers(run.stage, "zk", leader=0)
    stage.declare("ZooKeeperCluster", "zk", {"replicas": 1, "deletionPolicy": "Delete"})
    for _ in range(2):
        stage.settle("ZooKeeperCluster", "zk")
        members.turn()
    stage.settle("ZooKeeperCluster", "zk")

    for declared in (3, 1):

        def resize(settle: Callable[[], None], declared: int = declared) -> None:
            stage.patch("ZooKeeperCluster", "zk", {"spec": {"replicas": declared, "allowSingleMember": True}})
            for _ in range(12):
                settle()
                assert 0 in members.voters
                members.turn()
                stage.let_claims_go()
                if members.voters == list(range(declared)) and stage.condition("ZooKeeperCluster", "zk", "Progressing")[0] == "False":
                    break
            assert members.voters == list(range(declared))

        run.one_scene("ZooKeeperCluster", "zk", resize)


def bookkeeper_story(run: Run) -> None:
    """Two bookies are made, get autorecovery, and a changed configuration one after the other."""
    named = BookKeeperNames(ObjectKey(run.stage.namespace, "bk"))
    run.stage.declare("BookKeeperCluster", "bk", {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": 2, "deletionPolicy": "Delete"})
    run.settle("BookKeeperCluster", "bk")
    for number in range(2):
        run.stage.serve_bookie(named, number)
    run.settle("BookKeeperCluster", "bk")
    run.stage.set_status("Deployment", "bk-autorecovery", {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1})
    run.stage.elect_auditor(named)
    run.stage.patch("BookKeeperCluster", "bk", {"spec": {"config": {"rwRereplicateBackoffMs": "90000"}}})
    for number in range(2):
        run.settle("BookKeeperCluster", "bk")
        run.stage.serve_bookie(named, number)
    run.settle("BookKeeperCluster", "bk")


def lost_disk_story(run: Run) -> None:
    """A bookie loses its claims, and another one takes its place."""
    stage, named = run.stage, BookKeeperNames(ObjectKey(run.stage.namespace, "bk"))
    stage.declare("BookKeeperCluster", "bk", {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": 2})
    stage.settle("BookKeeperCluster", "bk")
    for number in range(2):
        stage.serve_bookie(named, number)
    stage.elect_auditor(named)
    stage.settle("BookKeeperCluster", "bk")
    stage.stop_bookie(named, 1)
    for claim in (named.journal_claim(1), named.ledgers_claim(1)):
        stage.delete("PersistentVolumeClaim", claim)
    run.settle("BookKeeperCluster", "bk")
    stage.serve_bookie(named, 2)
    run.settle("BookKeeperCluster", "bk")


def deletion_story(run: Run) -> None:
    """A bookie is deleted with its data."""
    stage, named = run.stage, BookKeeperNames(ObjectKey(run.stage.namespace, "bk"))
    stage.declare("BookKeeperCluster", "bk", {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": 1, "deletionPolicy": "Delete"})
    stage.settle("BookKeeperCluster", "bk")
    stage.serve_bookie(named, 0)
    stage.settle("BookKeeperCluster", "bk")
    stage.end_bookies(named)
    run.delete("BookKeeperCluster", "bk")


def drain_story(run: Run) -> None:
    """A bookie is drained to the end."""
    stage = run.stage
    bookies = Bookies(stage, 3)
    bookies.ledgers.put(7, (0, bookies.ids(2)), last_entry_id=9)
    bookies.settle = lambda: run.settle("BookKeeperCluster", "bk")
    bookies.want(bookies=2)
    bookies.ledgers.move(bookies.id(2), bookies.id(0))
    bookies.end_job("bk-bookie-2-drain-1")
    bookies.leave(2)
    bookies.retire(2)
    stage.let_claims_go()
    bookies.settle()
    assert bookies.claims() == {0, 1}


def herddb_story(run: Run) -> None:
    """Two SQL nodes are made, and a tablespace gets its second replica."""
    stage, named = run.stage, HerdDBNames(ObjectKey(run.stage.namespace, "db"))
    stage.declare("BookKeeperCluster", "bk", {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": 3})
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2025-01-01T00:00:00Z"}
    log = {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "ledgersRoot": f"/{stage.namespace}/bk/ledgers"}
    stage.set_status("BookKeeperCluster", "bk", {**log, "readyBookies": 3, "conditions": [{**ready, "observedGeneration": 1}]})
    stage.declare("HerdDBCluster", "db", {"bookKeeperRef": {"name": "bk"}, "replicas": 2})
    run.settle("HerdDBCluster", "db")
    for number in range(2):
        stage.serve("db-herddb", number)
    run.settle("HerdDBCluster", "db")
    path = tablespace_path(named.herd_root, "flights")
    stage.ensemble.put(path, encode_tablespace(TablespaceRecord(MADE_UP, "flights", named.pod(0), (named.pod(0),), 0, 0)))
    stage.nodes.herddb_holds(named, "flights", MADE_UP, ("leader", "follower"))
    stage.declare("Tablespace", "flights", {"herdDBRef": {"name": "db"}, "replicas": 2})
    run.settle("Tablespace", "flights")
    assert set(decode_tablespace(stage.ensemble.znodes[path][0]).replicas) == {named.pod(0), named.pod(1)}


def checkpoint_story(run: Run) -> None:
    """A Checkpoint is made, and its Job ends well."""
    stage = serving_database(run.stage)
    stage.settle("Tablespace", "flights")
    stage.declare("Checkpoint", "first", CHECKPOINT)
    run.settle("Checkpoint", "first")
    manifest = f"{INSTANCE}/a-uuid/manifests/{7:020d}-{9:020d}.json"
    said = CheckpointSummary(
        *("r", JobOutcome.SUCCEEDED, "done", INSTANCE, "flights", "a-uuid"),
        ledger_id=7,
        entry_id=9,
        open_transactions=0,
        restart_ledger_id=7,
        restart_entry_id=9,
        manifest=manifest,
    )
    end_job(stage, stage.found("Job", "first-checkpoint"), said)
    run.settle("Checkpoint", "first")
    run.settle("Tablespace", "flights")


def audit_story(run: Run) -> None:
    """An audit runs, and its Job ends with nothing found."""
    stage = serving_database(run.stage)
    stage.declare("ReplicationAudit", "once", {"bookKeeperRef": {"name": "bk"}})
    run.settle("ReplicationAudit", "once")
    end_job(stage, stage.found("Job", "once-audit"), AuditSummary("r", JobOutcome.SUCCEEDED, "done", ledgers=2))
    run.settle("ReplicationAudit", "once")


def schedule_story(run: Run) -> None:
    """A schedule makes its runs, tells what became of them, and lets the oldest one expire."""
    stage = run.stage
    stage.declare("Tablespace", "flights", {"herdDBRef": {"name": "db"}})
    nightly = {"schedule": "0 3 * * *", "retention": {"keepLast": 1}, "template": CHECKPOINT}
    stage.declare("ScheduledCheckpoint", "nightly", nightly)
    for day in NIGHTS:
        run.settle("ScheduledCheckpoint", "nightly", day)
        ended = {"phase": "Succeeded", "completedAt": text_of(day + HOUR), "verified": "compared with follower db-herddb-1"}
        stage.set_status("Checkpoint", names.scheduled_run("nightly", day), ended)
        run.settle("ScheduledCheckpoint", "nightly", day + 2 * HOUR)


def restore_story(run: Run) -> None:
    """A tablespace is made of a checkpoint's files."""
    stage = with_stack(run.stage)
    stage.settle("HerdDBCluster", "db")
    stage.declare("Tablespace", "from-files", example("restore-from-files.yaml"))
    stage.reconcile("Tablespace", "from-files")
    create(stage, "from_files")
    run.settle("Tablespace", "from-files")
    said = RestoreSummary("r", JobOutcome.SUCCEEDED, "done", ledger_id=4, entry_id=66113, rows=7, verified="7 rows compared")
    end_job(stage, stage.found("Job", "from-files-restore"), said)
    for kind, name in (("Tablespace", "from-files"), ("HerdDBCluster", "db"), ("Tablespace", "from-files")):
        run.settle(kind, name)


def archive_story(run: Run) -> None:
    """A log is archived, kept until then, and not archived any more."""
    stage = serving_database(run.stage)
    stage.settle("Tablespace", "flights")
    archive = {"destination": {"persistentVolumeClaim": {"claimName": "archives"}}}
    stage.patch("Tablespace", "flights", {"spec": {"log": {"archive": archive}}})
    run.settle("Tablespace", "flights")
    held = ArchivedRange((3, 0), 1_700_000_000_000, True, (7, 41), 1_700_000_090_000, (7, 42))
    progress = ArchiveProgress(destination="archives", held=held, current_at_millis=int(time.time() * 1000), lag_seconds=60.2)
    path = archive_progress_path(f"/{stage.namespace}/db/herd", "a-uuid")
    stage.ensemble.put(path, encode_archive_progress(progress))
    stage.ensemble.changed_by_path[path] = time.time()
    run.settle("Tablespace", "flights")
    stage.patch("Tablespace", "flights", {"spec": {"log": {"archive": None}}})
    run.settle("Tablespace", "flights")


def users_story(run: Run) -> None:
    """A user comes, gets another password, and goes."""
    stage = serving_database(run.stage)
    login = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/basic-auth", "metadata": {"name": "app-login"}}
    stage.of("Secret").create(body={**login, "stringData": {"username": "app", "password": "first"}}, namespace=stage.namespace)
    stage.patch("HerdDBCluster", "db", {"spec": {"users": [{"secretName": "app-login"}]}})
    run.settle("HerdDBCluster", "db")
    stage.patch("Secret", "app-login", {"stringData": {"password": "second"}})
    run.settle("HerdDBCluster", "db")
    stage.patch("HerdDBCluster", "db", {"spec": {"users": []}})
    run.settle("HerdDBCluster", "db")


def divergence_story(run: Run) -> None:
    """A copy that differs is barred, taken off the list, moved aside and made anew, and then found equal."""
    stage = serving_database(run.stage)
    stage.settle("Tablespace", "flights")
    herddb = HerdDBNames(ObjectKey(stage.namespace, "db"))
    url = f"http://{herddb.host(1)}:{names.HERDDB_HTTP_PORT}/tablespaces"
    stage.nodes.herddb_tells(herddb, 1, barred=False)
    stage.nodes.herddb_tells(herddb, 0, ready=False, role="booting")
    _compared(stage, "first", {"ledgerId": 7, "entryId": 12}, "Different")
    run.settle("Tablespace", "flights")
    stage.nodes.herddb_holds(herddb, "flights", "a-uuid", ("leader", "follower"))
    stage.nodes.herddb_tells(herddb, 1, barred=True)
    run.settle("Tablespace", "flights")
    stage.nodes.documents[url] = []
    run.settle("Tablespace", "flights")
    stage.nodes.herddb_holds(herddb, "flights", "a-uuid", ("leader", "follower"))
    run.settle("Tablespace", "flights")
    _compared(stage, "second", {"ledgerId": 7, "entryId": 15}, "Equal")
    run.settle("Tablespace", "flights")


def _compared(stage: Stage, name: str, lsn: Json, result: str) -> None:
    stage.declare("Checkpoint", name, CHECKPOINT)
    comparison = {"node": "db-herddb-1", "tablespaceUuid": "a-uuid", "lsn": lsn, "result": result}
    phase = "Succeeded" if result == "Equal" else "Failed"
    stage.set_status("Checkpoint", name, {"phase": phase, "completedAt": "2026-01-01T00:00:00Z", "comparison": comparison})


def database_deletion_story(run: Run) -> None:
    """A tablespace is dropped with its log, and then its database goes with the other log, its password and its volumes."""
    stage = database(run.stage, "Delete")
    stage.declare("Tablespace", "flights", {"herdDBRef": {"name": "db"}, "replicas": 1, "deletionPolicy": "Delete"})
    stage.settle("Tablespace", "flights")
    stage.set_status("Tablespace", "flights", {"uuid": MADE_UP})
    run.delete("Tablespace", "flights")
    run.delete("HerdDBCluster", "db")


def checkpoint_removal_story(run: Run) -> None:
    """Of two Checkpoints with the same files the first goes alone, and the last one takes the files along."""
    stage = run.stage
    stage.of("PersistentVolumeClaim").create(body=CLAIM, namespace=stage.namespace)
    for name in ("first", "second"):
        made(stage, name)
    run.delete("Checkpoint", "first")
    assert stage.live("Job", "first-removal") is None
    stage.delete("Checkpoint", "second")
    run.settle("Checkpoint", "second")
    ended = [{"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:01:00Z"} for kind in ("SuccessCriteriaMet", "Complete")]
    times = {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:00Z"}
    stage.set_status("Job", "second-removal", {**times, "succeeded": 1, "conditions": ended})
    run.settle("Checkpoint", "second")
    assert stage.live("Checkpoint", "second") is None


def sql_roll_story(run: Run) -> None:
    """SQL nodes get another image: the follower first, and the leader once it leads no more."""
    stage = serving_database(run.stage)
    stage.settle("Tablespace", "flights")
    herddb = HerdDBNames(ObjectKey(stage.namespace, "db"))
    stage.patch("HerdDBCluster", "db", {"spec": {"image": "example.org/herddb:8"}})
    run.settle("HerdDBCluster", "db")
    stage.see_template("db-herddb")
    for number, roles in ((1, ("leader", "follower")), (0, ("follower", "leader"))):
        run.settle("HerdDBCluster", "db")
        assert stage.live("Pod", herddb.pod(0)) is not None, "it stays until another one leads"
        stage.nodes.herddb_holds(herddb, "flights", "a-uuid", roles)
        run.settle("HerdDBCluster", "db")
        assert [pod["metadata"]["name"] for pod in stage.listed("Pod")] == [herddb.pod(1 - number)]
        stage.serve("db-herddb", number)
    run.settle("HerdDBCluster", "db")
    run.settle("Tablespace", "flights")


def sql_node_leaves_story(run: Run) -> None:
    """The last of three SQL nodes leads, and leaves: first its leadership moves, then another node gets a copy, and then its own goes."""
    stage = serving_database(run.stage)
    herddb = HerdDBNames(ObjectKey(stage.namespace, "db"))
    first, _, last = nodes = [herddb.pod(number) for number in range(3)]
    path = tablespace_path(herddb.herd_root, "flights")

    def holds(*roles: str) -> None:
        """What each node says of its copy; one that has none says nothing."""
        stage.nodes.herddb_holds(herddb, "flights", "a-uuid", roles)
        for number in (number for number, role in enumerate(roles) if not role):
            stage.nodes.documents[f"http://{herddb.host(number)}:{names.HERDDB_HTTP_PORT}/tablespaces"] = []

    stage.patch("HerdDBCluster", "db", {"spec": {"replicas": 3}})
    stage.settle("HerdDBCluster", "db")
    stage.serve("db-herddb", 2)
    for node in nodes:
        stage.ensemble.put(f"{herddb.herd_root}/nodes/{node}")
    stage.ensemble.put(path, encode_tablespace(TablespaceRecord("a-uuid", "flights", last, (first, last), 1, 30_000)))
    holds("follower", "", "leader")
    stage.settle("HerdDBCluster", "db")
    stage.settle("Tablespace", "flights")
    stage.patch("HerdDBCluster", "db", {"spec": {"replicas": 2}})
    for roles in (("follower", "", "leader"), ("leader", "", "follower"), ("leader", "follower", "follower"), ("leader", "follower", "")):
        holds(*roles)
        run.settle("HerdDBCluster", "db")
        run.settle("Tablespace", "flights")
    stage.delete("Pod", last)
    run.settle("HerdDBCluster", "db")
    assert set(decode_tablespace(stage.ensemble.znodes[path][0]).replicas) == set(nodes[:2])
    assert f"{herddb.herd_root}/nodes/{last}" not in stage.ensemble.znodes


KINDS = (
    *("ZooKeeperCluster", "BookKeeperCluster", "HerdDBCluster", "Tablespace"),
    *("Checkpoint", "ReplicationAudit", "ScheduledCheckpoint", "ScheduledReplicationAudit"),
)


def picture(stage: Stage, made: dict[tuple[str, str], Json] | None = None) -> Json:
    """All that is there in the end: resources, objects, znodes; without what differs between two namespaces anyway. `made` are the objects,
    where somebody has read them just now."""
    resources = {kind: stage.listed(kind) for kind in KINDS}
    found = stage.made() if made is None else made
    objects = {f"{kind} {name}": {**item, "status": None} for (kind, name), item in found.items() if kind != "Pod"}
    znodes = {path: data.decode("latin-1") for path, (data, _) in stage.ensemble.znodes.items()}
    text = json.dumps({"resources": resources, "made": objects, "znodes": znodes})
    shown: Json = masked(json.loads(without_random(text.replace(stage.namespace, "namespace"))))
    return shown


def without_random(text: str) -> str:
    """The same text in each run: without ids, times, hashes."""
    for pattern, instead in RANDOM:
        text = pattern.sub(instead, text)
    return text


MASKED = (
    "herdkeeper.io/intent",
    "herdkeeper.io/config",
    "password",
    "users",
    "usersRevision",
    "token",
    "super-digest",
    "host",
    "url",
    "leaderUrl",
    *("tls.crt", "tls.key", "ca.crt", "keystore.pem", "signing.crt", "signing.key"),
)
"""What is random, hashed from that, or has the namespace inside of base64."""


def masked(value: Any, key: str = "") -> Any:
    """Without fields that are new in each run: ids, times, versions, passwords."""
    match value:
        case dict():
            return {name: masked(entry, name) for name, entry in value.items() if name not in VOLATILE}
        case list():
            return [masked(entry, key) for entry in value]
        case str() if key in MASKED:
            return "masked"
        case _:
            return value


def identities(stage: Stage, made: dict[tuple[str, str], Json]) -> dict[str, int]:
    """How many different ids each bookie has in claims, StatefulSets and cookies: one, or it is two bookies.

    Names of revisions, in pods and in the status of StatefulSets, look like ids and are none.
    """
    objects = [{**item, "status": None} for (kind, _), item in made.items() if kind != "Pod"]
    found = set(re.findall(r"(bk-bookie-\d+)-([0-9a-f]{10})\b", json.dumps([objects, sorted(stage.ensemble.znodes)])))
    bookies = [bookie for bookie, _ in found]
    return {bookie: bookies.count(bookie) for bookie in bookies}


STORIES: list[tuple[Callable[[Run], None], int]] = [
    (zookeeper_story, 15),
    (members_story, 20),
    (certificates_story, 20),
    (bookkeeper_story, 25),
    (deletion_story, 12),
    (drain_story, 12),
    (lost_disk_story, 8),
    (herddb_story, 10),
    (checkpoint_story, 3),
    (audit_story, 2),
    (schedule_story, 8),
    (restore_story, 4),
    (archive_story, 6),
    (users_story, 6),
    (divergence_story, 8),
    (database_deletion_story, 8),
    (checkpoint_removal_story, 4),
    (sql_roll_story, 4),
    (sql_node_leaves_story, 6),
]


@pytest.mark.parametrize(("story", "least_writes"), STORIES, ids=[story.__name__ for story, _ in STORIES])
def test_whichever_write_was_a_processs_last_one_the_next_process_ends_the_same(
    dynamic: DynamicClient, story: Callable[[Run], None], least_writes: int
) -> None:
    undisturbed = Run(dynamic)
    story(undisturbed)
    assert sum(undisturbed.writes) >= least_writes
    deaths = 0
    for last in range(1, max(undisturbed.writes) + 1):
        run = Run(dynamic, undisturbed, last)
        with suppress(Over):
            story(run)
        assert run.deaths == sum(writes >= last for writes in undisturbed.writes), f"a scene has no write {last}: {undisturbed.writes}"
        deaths += run.deaths
    assert deaths == sum(undisturbed.writes)


def test_a_password_that_a_dead_process_generated_is_kept(dynamic: DynamicClient, namespace: str) -> None:
    stage = Stage(dynamic, namespace)
    stage.declare("BookKeeperCluster", "bk", {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": 3})
    log = {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "ledgersRoot": f"/{namespace}/bk/ledgers"}
    stage.set_status("BookKeeperCluster", "bk", {**log, "readyBookies": 3})
    stage.declare("HerdDBCluster", "db", {"bookKeeperRef": {"name": "bk"}})
    with pytest.raises(Died, match="secrets"):
        stage.reconcile("HerdDBCluster", "db", stage.clients(Process(dynamic, 1)))
    before = stage.found("Secret", "db-herddb-credentials")["data"]
    stage.settle("HerdDBCluster", "db")
    assert stage.found("Secret", "db-herddb-credentials")["data"] == before
