"""A whole stack that is settled, with one resource of each kind, and in turns what kubelets and servers do."""

from __future__ import annotations

import base64
import datetime
import uuid
from collections.abc import Callable, Mapping

from kubernetes.dynamic import DynamicClient
from played_ledgers import PlayedLedgers
from played_members import PlayedMembers
from sql_database import RECORD, named, record_path
from stage import MERGE_PATCH, Json, Stage, written
from test_reconcile_restore import create, end_job, example

from herdkeeper.codecs.herddb.node import node_path
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord, decode_tablespace, encode_tablespace, tablespaces_path
from herdkeeper.engine.result import Outcome
from herdkeeper.protocol.job_summary import JobOutcome, RestoreSummary
from herdkeeper.shared import names
from herdkeeper.shared.names import BOOKIE_LABEL, BookKeeperNames, ObjectKey
from herdkeeper.shared.time import text_of
from herdkeeper.shared.unknown import NotListening

NIGHT = datetime.datetime(2100, 1, 1, 1, 30, tzinfo=datetime.UTC)
PLACE: Json = {"persistentVolumeClaim": {"claimName": "checkpoints"}}
CHECKPOINT: Json = {"tablespaceRef": {"name": "flights"}, "destination": PLACE}
AUDIT: Json = {"bookKeeperRef": {"name": "bk"}, "destination": PLACE, "window": {"from": "22:00", "to": "05:00"}}
DISKS = "disks-that-never-grow"
SERVERS: tuple[tuple[str, str, Json], ...] = (
    ("ZooKeeperCluster", "zk", {"replicas": 3, "deletionPolicy": "Delete", "security": {}}),
    (
        "BookKeeperCluster",
        "bk",
        {
            "zooKeeperRef": {"name": "zk"},
            "bookies": 4,
            "journal": {"size": "5Gi", "storageClassName": DISKS},
            "ledgers": {"size": "20Gi", "storageClassName": DISKS},
        },
    ),
    ("HerdDBCluster", "db", {"bookKeeperRef": {"name": "bk"}, "replicas": 2, "deletionPolicy": "Delete"}),
    (
        "Tablespace",
        "flights",
        {
            "herdDBRef": {"name": "db"},
            "preferredLeader": "db-herddb-0",
            "failback": "WhenHealthy",
            "log": {"archive": {"destination": PLACE}},
        },
    ),
    ("Tablespace", "from-files", {**example("restore-from-files.yaml"), "preferredLeader": "db-herddb-0", "failback": "WhenHealthy"}),
)
JOBS: tuple[tuple[str, str, Json], ...] = (
    ("Checkpoint", "once", CHECKPOINT),
    ("ReplicationAudit", "audit", AUDIT),
    ("ScheduledCheckpoint", "nightly", {"schedule": "0 3 * * *", "template": CHECKPOINT, "drill": {"schedule": "0 5 * * *"}}),
    ("ScheduledReplicationAudit", "weekly", {"schedule": "0 3 * * 0", "template": AUDIT}),
)


class PlayedStack:
    """`disrupted` are the pods that were deleted since it was emptied last. `stuck` gives the status in which pods of a template's spec
    stay, None for those that serve. Those whose status is empty are not even made. `more` is added to the specs of resources, by their
    names."""

    def __init__(self, dynamic: DynamicClient, more: Mapping[str, Json] | None = None) -> None:
        name = f"fields-{uuid.uuid4().hex[:12]}"
        dynamic.resources.get(api_version="v1", kind="Namespace").create(body={"metadata": {"name": name}})
        self.stage = Stage(dynamic, name)
        self.members = PlayedMembers(self.stage, "zk", leader=0)
        self.bookies = BookKeeperNames(ObjectKey(name, "bk"))
        self.pods: dict[str, Json] = {}
        self.stuck: Callable[[Json], Json | None] = lambda _: None
        self.disrupted: list[str] = []
        self.away: set[str] = set()
        self.resources: list[tuple[str, str]] = []
        self.stage.of("Secret").create(body=OTHER_SECRET, namespace=name)
        if self.stage.live("StorageClass", DISKS) is None:
            self.stage.add_storage_class(DISKS, expandable=False)
        for kind, resource, spec in (*SERVERS, *JOBS):
            self.stage.declare(kind, resource, {**spec, **(more or {}).get(resource, {})})
            self.resources.append((kind, resource))
            if resource == "from-files":
                self.stage.cache = self.stage.watched()
                self.reconcile(kind, resource)
                create(self.stage, "from_files")
            self.settle()
            if kind == "HerdDBCluster":
                self._found_database()
        self._end_runs()
        self.settle()

    def _found_database(self) -> None:
        self.stage.elect_auditor(self.bookies)
        ids = [self.stage.bookie_id(self.bookies, number) for number in range(4)]
        ledgers = PlayedLedgers(self.stage.ensemble, self.bookies.ledgers_root)
        ledgers.put(7, (0, ids[:3]), last_entry_id=9)
        ledgers.put(8, (0, ids[1:]), last_entry_id=9)
        self.stage.ensemble.put(record_path(self.stage), encode_tablespace(RECORD))
        self.stage.nodes.tokens.add(base64.b64decode(self.stage.found("Secret", "db-herddb-credentials")["data"]["token"]).decode())

    def _end_runs(self) -> None:
        """The restore, and the runs that the schedules made, have succeeded."""
        ended = {"phase": "Succeeded", "completedAt": text_of(NIGHT - datetime.timedelta(hours=20)), "verified": "with a follower"}
        for kind, resource in (("Checkpoint", "nightly"), ("ReplicationAudit", "weekly")):
            active = self.stage.found(f"Scheduled{kind}", resource)["status"]["active"]
            self.stage.set_status(kind, active, ended if kind == "Checkpoint" else {**ended, "verified": None})
        said = RestoreSummary("r", JobOutcome.SUCCEEDED, "done", ledger_id=4, entry_id=66113, rows=7, verified="7 rows compared")
        end_job(self.stage, self.stage.found("Job", "from-files-restore"), said)

    def settle(self, turns: int = 40) -> None:
        """Turns of operator and servers, until nothing is written any more and nothing is to be played."""
        for _ in range(turns):
            before = written()
            self.stage.cache = self.stage.watched()
            for kind, name in self.resources:
                self.reconcile(kind, name)
            if not self._play() and written() == before:
                return
        raise AssertionError(f"it is still written to after {turns} turns: {self.disrupted}")

    def lose_every_status(self) -> None:
        """As a backup restores resources. What is below a resource without a status is looked at first, and sees the least."""
        servers = ("ZooKeeperCluster", "BookKeeperCluster", "HerdDBCluster", "Tablespace")
        named = [(kind, name) for kind, name in self.resources if kind in servers]
        for kind, name in named:
            path = f"{self.stage.of(kind).path(name=name, namespace=self.stage.namespace)}/status"
            self.stage.dynamic.request("patch", path, body={"status": None}, content_type=MERGE_PATCH)
        self.disrupted.clear()
        for kind, name in reversed(named):
            self.stage.cache = self.stage.watched()
            self.reconcile(kind, name)
        self.settle()

    def remove(self, kind: str, name: str) -> None:
        """A resource goes, with what it owns: there is no garbage collector here."""
        uid = self.stage.found(kind, name)["metadata"]["uid"]
        self.stage.delete(kind, name)
        while self.stage.live(kind, name) is not None:
            self.stage.cache = self.stage.watched()
            self.reconcile(kind, name)
        for owned, item in self.stage.made().items():
            if any(owner["uid"] == uid for owner in item["metadata"].get("ownerReferences") or []):
                self.stage.delete(*owned)
        self.resources.remove((kind, name))
        self.settle()

    def reconcile(self, kind: str, name: str) -> None:
        """One look of the operator, and what it stopped is gone. The hour is the same whenever that counts."""
        before = written()
        at_night = kind in ("ReplicationAudit", "ScheduledCheckpoint", "ScheduledReplicationAudit")
        result = self.stage.reconcile_at(NIGHT, kind, name) if at_night else self.stage.reconcile(kind, name)
        assert result.outcome is not Outcome.FAILED, f"{kind} {name}: {self.stage.events(name)[-1:]}"
        if written() != before:
            self._see_pods()

    def _see_pods(self) -> None:
        """Sessions and ports of the processes that ended are gone, and never are two away at once."""
        found = self._found_pods()
        gone = [pod for name, pod in self.pods.items() if name not in found]
        self.disrupted += [pod["metadata"]["name"] for pod in gone]
        self.away = {name for name in self.pods.keys() | self.away if not _is_ready(found.get(name))}
        assert len(self.away) <= 1, f"{self.away} are away at once"
        for pod in gone:
            self._ended(pod)
        self.pods = found

    def _found_pods(self) -> dict[str, Json]:
        return {pod["metadata"]["name"]: pod for pod in self.stage.listed("Pod") if names.REVISION_LABEL in pod["metadata"]["labels"]}

    def _ended(self, pod: Json) -> None:
        name, ensemble = pod["metadata"]["name"], self.stage.ensemble
        if (bookie := pod["metadata"]["labels"].get(BOOKIE_LABEL)) is not None:
            bookie_id, root = self.stage.bookie_id(self.bookies, int(bookie)), f"{self.bookies.ledgers_root}/available"
            for path in (f"{root}/{bookie_id}", f"{root}/readonly/{bookie_id}"):
                ensemble.znodes.pop(path, None)
        elif name.startswith("zk-"):
            self.stage.nodes.documents.pop(
                f"http://{self.members.named.host(int(name[-1]))}:{names.ZOOKEEPER_ADMIN_PORT}/commands/srvr", None
            )
        elif name.startswith("db-herddb-"):
            self.stage.nodes.documents[self._url(name)] = NotListening(f"{name} has ended")

    def _url(self, node: str) -> str:
        return f"http://{named(self.stage).host_of(node)}:{names.HERDDB_HTTP_PORT}/tablespaces"

    def _play(self) -> bool:
        """Whether pods came or went."""
        replicas = self._replicas()
        wanted = {(name, number) for name, count in replicas.items() for number in range(count)}
        surplus = self.pods.keys() - {f"{stateful_set}-{number}" for stateful_set, number in wanted}
        for pod in surplus:
            self.stage.delete("Pod", pod)
            self._ended(self.pods[pod])
        self.away -= surplus
        missing = [each for each in sorted(wanted) if not _is_ready(self.pods.get(f"{each[0]}-{each[1]}"))]
        served = [each for each in missing if self._start(*each)]
        if surplus or served:
            self.pods = self._found_pods()
        self.away = {name for name in self.away if not _is_ready(self.pods.get(name))}
        self._turn_members(replicas.get("zk-zookeeper", 0))
        self._sql_nodes()
        return self._bind_claims() or self._autorecovery() or bool(surplus or served)

    def _bind_claims(self) -> bool:
        unbound = [claim for claim in self.stage.listed("PersistentVolumeClaim") if claim["status"]["phase"] != "Bound"]
        for claim in unbound:
            status = {"phase": "Bound", "capacity": claim["spec"]["resources"]["requests"]}
            self.stage.set_status("PersistentVolumeClaim", claim["metadata"]["name"], status)
        return bool(unbound)

    def _replicas(self) -> dict[str, int]:
        found = self.stage.listed("StatefulSet")
        for document in found:
            if (document.get("status") or {}).get("observedGeneration") != document["metadata"]["generation"]:
                self.stage.see_template(document["metadata"]["name"])
        return {document["metadata"]["name"]: int(document["spec"]["replicas"]) for document in found}

    def _start(self, stateful_set: str, number: int) -> bool:
        """Whether that pod came, or serves now."""
        name = f"{stateful_set}-{number}"
        stuck = self.stuck(self.stage.found("StatefulSet", stateful_set)["spec"]["template"]["spec"])
        if stuck == {} or name in self.pods:
            return False
        if stateful_set.startswith("bk-bookie-") and stuck is None:
            self.stage.serve_bookie(self.bookies, int(stateful_set.removeprefix("bk-bookie-")))
        else:
            self.stage.serve(stateful_set, number)
        if stuck:
            self.stage.set_status("Pod", name, stuck)
        return True

    def _turn_members(self, members: int) -> None:
        if members and all(_is_ready(self.pods.get(f"zk-zookeeper-{number}")) for number in range(members)):
            self.members.turn()
            self.stage.let_claims_go()

    def _sql_nodes(self) -> None:
        """Each SQL node that runs is registered, and does what the records say."""
        root, ensemble = named(self.stage).herd_root, self.stage.ensemble
        paths = [f"{tablespaces_path(root)}/{name}" for name in ensemble.children(tablespaces_path(root)) or ()]
        records = [decode_tablespace(ensemble.znodes[path][0]) for path in paths]
        for node, pod in self.pods.items():
            if node.startswith("db-herddb-") and _is_ready(pod):
                if node_path(root, node) not in ensemble.znodes:
                    ensemble.put(node_path(root, node))
                copies = [_copy(record, node) for record in records if node in record.replicas]
                self.stage.nodes.documents[self._url(node)] = copies

    def _autorecovery(self) -> bool:
        found = self.stage.live("Deployment", "bk-autorecovery")
        if found is None or (found.get("status") or {}).get("readyReplicas") == found["spec"]["replicas"]:
            return False
        counted = ("replicas", "updatedReplicas", "readyReplicas")
        self.stage.set_status("Deployment", "bk-autorecovery", dict.fromkeys(counted, found["spec"]["replicas"]))
        return True


OTHER_SECRET: Json = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "other"},
    "stringData": {"username": "other", "password": "secret"},
}


def _is_ready(pod: Json | None) -> bool:
    conditions = ((pod or {}).get("status") or {}).get("conditions") or []
    return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)


def _copy(record: TablespaceRecord, node: str) -> Json:
    role, lsn = "leader" if record.leader == node else "follower", {"ledgerId": 7, "entryId": 9}
    told = {"name": record.name, "uuid": record.uuid, "role": role, "ready": True, "recoverable": True, "fullCheck": None}
    return {**told, "applied": lsn, "checkpoint": lsn}
