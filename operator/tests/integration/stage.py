"""A namespace of the real API server on which resources are reconciled by hand, with the servers' parts played.

There is no controller manager and no kubelet: pods appear, serve and go when a test says so, and so do deleted volume claims.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import NotFoundError
from played_bookies import PlayedBookies
from played_ensemble import PlayedEnsemble, PlayedEnsembles
from played_nodes import PlayedNodes
from unchanged_reads import UnchangedReads

from herdkeeper.api import HerdDBCluster, Tablespace, ZooKeeperCluster
from herdkeeper.api.default_images import SHIPPED_IMAGES, DefaultImages
from herdkeeper.api.resource import API_VERSION
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.counters import WRITES
from herdkeeper.clients.kubernetes import JOBS, SECRETS, SHARED, WORKLOADS, KubernetesReader, LiveSource, as_sent
from herdkeeper.clients.kubernetes_writer import KubernetesWriter
from herdkeeper.clients.liveness import NodeLiveness
from herdkeeper.clients.object_cache import ObjectCache
from herdkeeper.clients.paged_reads import PagedReads
from herdkeeper.engine import leadership
from herdkeeper.engine.execute import Clients
from herdkeeper.engine.key import Key
from herdkeeper.engine.kinds import steps_by_kind
from herdkeeper.engine.leadership import reconcile_leadership
from herdkeeper.engine.reconcile import reconcile
from herdkeeper.engine.result import Outcome, Result
from herdkeeper.herddb.observe.cluster import observe_leadership
from herdkeeper.planning.actions import soonest
from herdkeeper.process.watched_kinds import WATCHED_KINDS
from herdkeeper.settings import Settings
from herdkeeper.shared import names
from herdkeeper.shared.names import BOOKIE_LABEL, BookKeeperNames, ObjectKey

Json = dict[str, Any]

CLAIM = "PersistentVolumeClaim"
MERGE_PATCH = "application/merge-patch+json"
ZOOKEEPER_ADDRESS = "zookeeper.elsewhere.svc:2181"
STEPS = steps_by_kind(Settings())
MADE = {kind: api_version for api_version, kind in (*WORKLOADS, *SHARED, *SECRETS, *JOBS)}
"""apiVersion by kind of what the operator may make, and pods."""
VERSIONS = {**MADE, "Event": "v1", "Node": "v1", "StorageClass": "storage.k8s.io/v1"}
"""The same, and of what else is there; all others are kinds of this project."""


def written() -> float:
    """How many writes the operator has counted so far."""
    return sum(sample.value for metric in WRITES.collect() for sample in metric.samples if sample.name.endswith("_total"))


@dataclass
class Stage:
    """What a test declares, plays and looks at, as an administrator. `ensemble` is the ZooKeeper at ZOOKEEPER_ADDRESS.

    `operator` is the operator's own client, where it shall have no more rights than its ServiceAccount, or its calls are counted or
    disturbed: each look of it asks for everything anew. Else it is an administrator too, and asks anew for what was written to.
    """

    dynamic: DynamicClient
    namespace: str
    ensembles: PlayedEnsembles = field(default_factory=lambda: PlayedEnsembles(ZOOKEEPER_ADDRESS))
    nodes: PlayedNodes = field(default_factory=PlayedNodes)
    leads: bool = True
    operator: DynamicClient | None = None
    liveness: NodeLiveness = field(default_factory=lambda: NodeLiveness(now=lambda: 0.0))
    """Its clock stands still: no report gets old on a busy machine."""
    images: DefaultImages = SHIPPED_IMAGES
    """What servers run whose resource names no image: the operator's setting."""
    assigned_ids: bool = False
    """Whether the platform assigns users and groups to pods: the operator's setting."""
    cache: ObjectCache | None = None
    """What looks rest on; None: they read everything."""
    scans: PagedReads | None = None
    """What was read of ledgers before; None: each look reads them anew, and waits for the end."""
    _ways: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bookies = PlayedBookies(self.ensemble)
        self._reads = UnchangedReads(self.dynamic)

    @property
    def ensemble(self) -> PlayedEnsemble:
        return self.ensembles.ensemble

    def clients(self, client: Any = None) -> Clients:
        """Hands that write with `client`, by default with the operator's."""
        operator = self.operator or self.dynamic
        source = self._reads if self.operator is None else LiveSource(operator)
        kubernetes = KubernetesReader(source, self.images, assigned_ids=self.assigned_ids)
        scans = self.scans or PagedReads(wait_seconds=60.0)
        reader = ClusterReader(kubernetes, self.ensembles, self.nodes, self.liveness, scans)
        return Clients(KubernetesWriter(client or operator, self.cache), reader, self.bookies, lambda: self.leads, self.nodes)

    def reconcile(self, kind: str, name: str, clients: Clients | None = None) -> Result:
        """By the controllers of a kind. A HerdDBCluster's leadership is looked at before, and again once its wishes are published."""
        key, with_hands = Key(kind, self.namespace, name), clients or self.clients()
        if kind != HerdDBCluster.KIND:
            return reconcile(key, STEPS[kind], with_hands, self.cache)
        first = self.lead(name, with_hands)
        result = reconcile(key, STEPS[kind], with_hands, self.cache)
        led = [first, self.lead(name, with_hands)]
        again = soonest(led[-1].requeue_after_seconds, result.requeue_after_seconds)
        return Result(Outcome.FAILED if Outcome.FAILED in [each.outcome for each in led] else result.outcome, again)

    def lead(self, name: str, clients: Clients | None = None) -> Result:
        """The leadership controller looks at a HerdDBCluster."""
        return reconcile_leadership(Key(HerdDBCluster.KIND, self.namespace, name), clients or self.clients(), self.cache)

    def reconcile_at(self, now: datetime.datetime | float, kind: str, name: str, clients: Clients | None = None) -> Result:
        """A reconcile at another time than the present: of a schedule, or of a HerdDBCluster (seconds since 1970)."""
        steps = replace(STEPS[kind], observe=lambda resource, reader: replace(STEPS[kind].observe(resource, reader), now=now))
        if not isinstance(now, datetime.datetime):
            with patch.object(
                leadership, "observe_leadership", lambda cluster, reader: replace(observe_leadership(cluster, reader), now=now)
            ):
                self.lead(name, clients)
        return reconcile(Key(kind, self.namespace, name), steps, clients or self.clients(), self.cache)

    def watched(self) -> ObjectCache:
        """A cache of all that is in the namespace now, as watches would have told it."""
        cache = ObjectCache()
        for kind in WATCHED_KINDS:
            labels = dict([kind.selector.split("=")]) if kind.selector else {}
            for document in self._reads.select(kind.api_version, kind.kind, self.namespace, labels):
                cache.put(document)
            cache.set_complete(kind.kind, True)
        return cache

    def settle(self, kind: str, name: str) -> None:
        """Reconcile until nothing is written any more."""
        for _ in range(30):
            before = written()
            self.reconcile(kind, name)
            if written() == before:
                return
        raise AssertionError(f"{kind} {name} is still written to after 30 reconciles: {self.events(name)[-3:]}")

    def declare(self, kind: str, name: str, spec: Json, annotations: Mapping[str, str] | None = None) -> Json:
        """The user's `kubectl create`; the resource as it was stored. Unless its spec says otherwise, an ensemble is in plain text, and no
        full check comes by its schedule.
        """
        if kind == ZooKeeperCluster.KIND:
            spec = {"security": {"mode": "Insecure"}, **spec}
        if kind == Tablespace.KIND:
            spec = {"fullCheck": {"suspend": True}, **spec}  # by default one comes at some minute of the week's nights
        metadata = {"name": name, "annotations": dict(annotations or {})}
        body = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
        return dict(self.of(kind).create(body=body, namespace=self.namespace).to_dict())

    def live(self, kind: str, name: str) -> Json | None:
        """An object as it is now, None when there is none."""
        try:
            return dict(self.of(kind).get(name=name, namespace=self.namespace, serializer=as_sent))
        except NotFoundError:
            return None

    def found(self, kind: str, name: str) -> Json:
        """An object that must be there."""
        document = self.live(kind, name)
        assert document is not None, f"there is no {kind} {name}"
        return document

    def listed(self, kind: str) -> list[Json]:
        """All objects of a kind in the namespace."""
        return list(self.of(kind).get(namespace=self.namespace, serializer=as_sent).get("items") or [])

    def patch(self, kind: str, name: str, body: Json) -> None:
        """Somebody else's `kubectl patch`."""
        self.of(kind).patch(body=body, name=name, namespace=self.namespace, content_type=MERGE_PATCH, field_manager="somebody")

    def delete(self, kind: str, name: str) -> None:
        """Somebody else's `kubectl delete`. A claim is gone at once: what protects it has no controller here."""
        self.of(kind).delete(name=name, namespace=self.namespace, body={"propagationPolicy": "Background"})
        if kind == CLAIM:
            self.let_claims_go()

    def let_claims_go(self) -> None:
        """What the controller of protected volume claims does once no pod uses them."""
        for claim in self.listed(CLAIM):
            if claim["metadata"].get("deletionTimestamp"):
                self.patch(CLAIM, claim["metadata"]["name"], {"metadata": {"finalizers": None}})

    def made(self) -> dict[tuple[str, str], Json]:
        """All objects in the namespace of kinds that the operator makes, by kind and name; not those that Kubernetes puts there."""
        items: dict[tuple[str, str], Json] = {}
        for kind, api_version in MADE.items():
            for document in self.listed(kind):
                items[(kind, document["metadata"]["name"])] = {**document, "apiVersion": api_version, "kind": kind}
        return {key: item for key, item in items.items() if key != ("ConfigMap", "kube-root-ca.crt")}

    def versions(self) -> dict[tuple[str, str], str]:
        """The resourceVersion of everything made, which any write to it changes."""
        return {key: item["metadata"]["resourceVersion"] for key, item in self.made().items()}

    def serve(self, stateful_set: str, number: int = 0, node: str | None = None) -> None:
        """A pod of a StatefulSet, made from its present template, appears (on `node`, if one is given) or becomes Ready again."""
        name, document = f"{stateful_set}-{number}", self.found("StatefulSet", stateful_set)
        revision, template = self._see_template(document), document["spec"]["template"]
        if (pod := self.live("Pod", name)) is None:
            containers = [{"name": "server", "image": template["spec"]["containers"][0]["image"]}]
            secrets = [volume for volume in template["spec"].get("volumes") or [] if "secret" in volume]
            spec = {"containers": containers, "volumes": secrets, **({"nodeName": node} if node else {})}
            labels = {**template["metadata"]["labels"], names.REVISION_LABEL: revision}
            annotations = template["metadata"].get("annotations") or {}
            metadata = {"name": name, "labels": labels, "annotations": annotations, "ownerReferences": [_made_by(document)]}
            made = {"metadata": metadata, "spec": spec}
            self.of("Pod").create(body={"apiVersion": "v1", "kind": "Pod", **made}, namespace=self.namespace)
        self._ready(name, "True", pod)

    def made_by(self, stateful_set: str) -> Json:
        """How a pod says which StatefulSet made it."""
        return _made_by(self.found("StatefulSet", stateful_set))

    def see_template(self, stateful_set: str) -> str:
        """The controller of a StatefulSet has seen its present template; answers the template's revision."""
        return self._see_template(self.found("StatefulSet", stateful_set))

    def _see_template(self, document: Json) -> str:
        stateful_set, template, generation = document["metadata"]["name"], document["spec"]["template"], document["metadata"]["generation"]
        revision = f"{stateful_set}-{hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:10]}"
        status = {"replicas": 1, "observedGeneration": generation, "currentRevision": revision, "updateRevision": revision}
        if any(document.get("status", {}).get(field) != value for field, value in status.items()):
            self.set_status("StatefulSet", stateful_set, status)
        return revision

    def serve_bookie(self, named: BookKeeperNames, number: int, node: str | None = None) -> None:
        """A bookie's pod is Ready, and it is registered in the metadata under the id that it was given."""
        self.serve(named.stateful_set(number), node=node)
        bookie_id = self.bookie_id(named, number)
        self.ensemble.put(f"{named.ledgers_root}/cookies/{bookie_id}")
        self.ensemble.put(f"{named.ledgers_root}/available/{bookie_id}")

    def end_bookies(self, named: BookKeeperNames) -> None:
        """All bookies' processes ended, and with them the sessions that registered them."""
        for pod in self.listed("Pod"):
            if pod["metadata"]["labels"].get(BOOKIE_LABEL) is not None:
                self.delete("Pod", pod["metadata"]["name"])
        available = f"{named.ledgers_root}/available/"
        self.ensemble.znodes = {path: entry for path, entry in self.ensemble.znodes.items() if not path.startswith(available)}

    def elect_auditor(self, named: BookKeeperNames) -> None:
        """One of autorecovery's daemons wins the election."""
        election = f"{named.ledgers_root}/underreplication/auditorelection"
        self.ensemble.put(election, b'bookieId: "bk-autorecovery-0"')
        self.ensemble.put(f"{election}/V_0000000000")

    def stop_bookie(self, named: BookKeeperNames, number: int) -> None:
        """A bookie's pod is gone and its session with ZooKeeper has ended."""
        self.ensemble.delete_tree(f"{named.ledgers_root}/available/{self.bookie_id(named, number)}")
        self.delete("Pod", named.pod(number))

    def bookie_id(self, named: BookKeeperNames, number: int) -> str:
        """The id that a bookie's process is started with."""
        found = self._reads.get("apps/v1", "StatefulSet", ObjectKey(self.namespace, named.stateful_set(number)))
        assert found is not None, f"there is no StatefulSet of bookie {number}"
        (container,) = found["spec"]["template"]["spec"]["containers"]
        return next(str(entry["value"]) for entry in container["env"] if entry["name"] == "BOOKIE_ID")

    def add_node(self, name: str, labels: Mapping[str, str]) -> None:
        """A node with these labels, or other labels on one that is there."""
        if self.live("Node", name) is None:
            self.of("Node").create(body={"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": dict(labels)}})
        else:
            self.patch("Node", name, {"metadata": {"labels": dict(labels)}})

    def add_storage_class(self, name: str, expandable: bool) -> None:
        """A StorageClass whose volumes can grow, or can't."""
        body = {"metadata": {"name": name}, "provisioner": "example.org/disks", "allowVolumeExpansion": expandable}
        self.of("StorageClass").create(body={"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **body})

    def stop_serving(self, pod: str) -> None:
        """A pod fails its readiness probe."""
        self._ready(pod, "False")

    def condition(self, kind: str, name: str, which: str = "Ready") -> tuple[str, str]:
        """Status and reason of a resource's condition."""
        conditions = self.found(kind, name)["status"]["conditions"]
        (entry,) = [entry for entry in conditions if entry["type"] == which]
        return entry["status"], entry["reason"]

    def events(self, name: str) -> list[Json]:
        """The events beside a resource, in the order in which they came."""
        mine = [event for event in self.listed("Event") if event["involvedObject"]["name"] == name]
        return sorted(mine, key=lambda event: int(event["metadata"]["resourceVersion"]))

    def set_status(self, kind: str, name: str, status: Json) -> None:
        """What another controller, or the operator for another resource, has found out."""
        path = f"{self.of(kind).path(name=name, namespace=self.namespace)}/status"
        self.dynamic.request("patch", path, body={"status": status}, content_type=MERGE_PATCH)

    def _ready(self, pod: str, status: str, before: Json | None = None) -> None:
        said = (before or {}).get("status") or {}
        known = [(condition["type"], condition["status"]) for condition in said.get("conditions") or []]
        if (said.get("phase"), known) != ("Running", [("Ready", status)]):
            self.set_status("Pod", pod, {"phase": "Running", "conditions": [{"type": "Ready", "status": status}]})

    def of(self, kind: str) -> Any:
        """The dynamic client's way to objects of a kind."""
        if kind not in self._ways:
            self._ways[kind] = self.dynamic.resources.get(api_version=VERSIONS.get(kind, API_VERSION), kind=kind)
        return self._ways[kind]


def _made_by(stateful_set: Json) -> Json:
    metadata = stateful_set["metadata"]
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": metadata["name"], "uid": metadata["uid"], "controller": True}


@contextmanager
def nothing_written(stage: Stage) -> Iterator[None]:
    """Within it, the operator counts no write and no object changes."""
    versions, before = stage.versions(), written()
    yield
    assert written() == before
    assert stage.versions() == versions
