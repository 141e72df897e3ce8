"""The API server of a unit test of the plugin: it holds documents, notes what is written, and lets a test act while a command waits."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from herdkeeper.plugin.cluster import Cluster, ClusterError, ConflictError, Query
from herdkeeper.plugin.command import Answer, Call
from herdkeeper.plugin.kinds import Kind
from herdkeeper.plugin.lost_quorum import LOOK
from herdkeeper.plugin.parser import parser_of
from herdkeeper.plugin.screen import Screen
from herdkeeper.plugin.table import COMMANDS

Json = dict[str, Any]


@dataclass
class PlayedCluster:
    """Documents by kind and name. `writes` are (verb, kind, name, body, whether it was a dry run)."""

    documents: list[Json] = field(default_factory=list)
    writes: list[tuple[str, str, str, Json, bool]] = field(default_factory=list)
    elsewhere: list[Json] = field(default_factory=lambda: [pod("operator", "herdkeeper-operator", "none/none")])
    """What is in all other namespaces: an operator that runs."""
    texts: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """What is streamed, by an object's name and the subresource."""
    shown: dict[str, str] = field(default_factory=dict)
    """What commands show in pods, by the pod's name. In others none can be run."""

    @property
    def namespace(self) -> str:
        return "demo"

    def in_namespace(self, namespace: str) -> PlayedCluster:
        return PlayedCluster(self.elsewhere)

    def get(self, kind: Kind, name: str) -> Json | None:
        found = (item for item in self.documents if (item["kind"], item["metadata"]["name"]) == (kind.name, name))
        return copy.deepcopy(next(found, None))

    def list(self, kind: Kind) -> tuple[Json, ...]:
        wanted = [pair.split("=") for pair in kind.selector.split(",") if pair]
        return tuple(
            item
            for item in self.documents
            if item["kind"] == kind.name and all((item["metadata"].get("labels") or {}).get(name) == value for name, value in wanted)
        )

    def patch(self, kind: Kind, name: str, body: Json, *, dry_run: bool) -> Json:
        self.writes.append(("patch", kind.name, name, body, dry_run))
        stored = next(item for item in self.list(kind) if item["metadata"]["name"] == name)
        version = stored["metadata"].get("resourceVersion")
        if (body.get("metadata") or {}).get("resourceVersion") not in (None, version):
            raise ConflictError("the object has been modified")
        changed = copy.deepcopy(stored) if dry_run else stored
        _merge(changed, body)
        if version is not None:
            changed["metadata"]["resourceVersion"] = str(int(version) + 1)
        return copy.deepcopy(changed)

    def create(self, kind: Kind, document: Json, *, dry_run: bool) -> Json:
        self.writes.append(("create", kind.name, document["metadata"]["name"], document, dry_run))
        if not dry_run:
            self.documents.append(copy.deepcopy(document))
        return document

    def delete(self, kind: Kind, name: str, uid: str | None = None, *, dry_run: bool = False) -> None:
        stored = self.get(kind, name)
        if uid is not None and stored is not None and stored["metadata"].get("uid") != uid:
            raise ConflictError("it has another uid")
        self.writes.append(("delete", kind.name, name, {} if uid is None else {"uid": uid}, dry_run))
        if dry_run:
            return
        self.documents = [item for item in self.documents if (item["kind"], item["metadata"]["name"]) != (kind.name, name)]

    def lines(self, kind: Kind, name: str, subresource: str, query: Query) -> Iterator[str]:
        yield from self.texts[(name, subresource)]

    def execute(self, pod: str, container: str, script: str) -> str:
        if script != LOOK:
            self.writes.append(("execute", container, pod, {"script": script}, False))
        if pod not in self.shown:
            raise ClusterError(f"no command can be run in the pod {pod}")
        return self.shown[pod]


def _merge(stored: Json, body: Json) -> None:
    for name, value in body.items():
        if value is None:
            stored.pop(name, None)
        elif isinstance(value, dict):
            _merge(stored.setdefault(name, {}), value)
        else:
            stored[name] = value


@dataclass(frozen=True)
class NotedScreen(Screen):
    """A screen that notes each text that is written to it."""

    written: list[str] = field(default_factory=list)

    def write(self, text: str) -> None:
        self.written.append(text)


def called(
    cluster: Cluster,
    *words: str,
    pause: Callable[[float], None] = lambda _: None,
    colours: bool = False,
    written: list[str] | None = None,
) -> tuple[Answer, list[str]]:
    """Runs a command line; its answer, and the texts that it wrote before (also into `written`). Nothing waits: `rescan_after_seconds` is
    the test's."""
    given = parser_of(COMMANDS).parse_args(list(words))
    screen = NotedScreen(io.StringIO(), colours, written if written is not None else [])
    command = next(each for each in COMMANDS if each.name == given.command)
    return command.run(Call(given, cluster, screen, pause)), screen.written


def resource(kind: str, name: str, spec: Json | None = None, **status: Any) -> Json:
    """A resource that is Ready and settled, unless the status says something else."""
    conditions = [condition("Ready", "True", "Ready", "all serve"), condition("Progressing", "False", "Settled", "nothing to do")]
    return {
        "apiVersion": "herdkeeper.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "generation": 1},
        "spec": spec or {},
        "status": {"conditions": conditions, "message": "all serve", **status},
    }


def condition(kind: str, status: str, reason: str, message: str) -> Json:
    """A condition of the first generation."""
    return {"type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": 1}


def pod(name: str, component: str, owner: str, *, ready: bool = True, **status: Any) -> Json:
    """A server's pod. `owner` is `Kind/name`."""
    kind, _, owner_name = owner.partition("/")
    labels = {
        "app.kubernetes.io/name": component,
        "app.kubernetes.io/managed-by": "herdkeeper",
        "herdkeeper.io/owner-kind": kind,
        "herdkeeper.io/owner-name": owner_name,
    }
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"nodeName": "worker"},
        "status": {"phase": "Running", "conditions": conditions, **status},
    }


def stack() -> list[Json]:
    """A whole stack, as its statuses and pods are when all is well."""
    replicas = [{"role": "leader", "node": "db-herddb-0"}, {"role": "follower", "node": "db-herddb-1"}]
    return [
        resource("ZooKeeperCluster", "zk", leader="zk-zookeeper-0"),
        resource(
            "BookKeeperCluster",
            "bk",
            {"zooKeeperRef": {"name": "zk"}},
            bookies=[{"number": 0, "bookieId": "bk-bookie-0-x", "state": "Writable"}],
        ),
        resource("HerdDBCluster", "db", {"bookKeeperRef": {"name": "bk"}}),
        resource("Tablespace", "flights", {"herdDBRef": {"name": "db"}, "replicas": 2}, leader="db-herddb-0", replicas=replicas),
        pod("zk-zookeeper-0", "zookeeper", "ZooKeeperCluster/zk"),
        pod("bk-bookie-0-0", "bookie", "BookKeeperCluster/bk"),
        pod("db-herddb-0", "herddb", "HerdDBCluster/db"),
        pod("db-herddb-1", "herddb", "HerdDBCluster/db"),
    ]
