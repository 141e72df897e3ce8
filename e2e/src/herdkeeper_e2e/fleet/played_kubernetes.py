"""Fakes of Kubernetes' controllers and kubelets, for examples/quickstart.yaml: StatefulSets that wait for their pods' deletion (OnDelete),
Deployments, PodDisruptionBudgets, volume claims, and pods from their binding to their end.

They write as often as the real ones, so watches get as many events as in a real cluster. Only Events and EndpointSlices are left out.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from herdkeeper.codecs.herddb.users import revision_of
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json, is_ready
from herdkeeper_e2e.fleet.addresses import address_of
from herdkeeper_e2e.fleet.api_client import ApiClient
from herdkeeper_e2e.fleet.played_servers import KINDS, Played, SqlNode, Stack
from herdkeeper_e2e.fleet.znodes import Znodes

SELECTOR = f"{names.MANAGED_BY_LABEL}%3D{names.MANAGER}"
PATHS = {
    "StatefulSet": ("/apis/apps/v1", "statefulsets"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "PodDisruptionBudget": ("/apis/policy/v1", "poddisruptionbudgets"),
    "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims"),
    "Pod": ("/api/v1", "pods"),
}
MACHINES = 30
PULL_SECONDS, READY_SECONDS, STOP_SECONDS, TOLD_SECONDS = 0.3, 2.0, 0.5, 1.0
"""From binding to a running process, from there to Ready, from the order to stop to the end. Then until a kubelet tells of a process that
died by itself."""
TURN_SECONDS = 0.05
"""Controllers look at a namespace so long after something changed there."""
HASH_LABEL = "pod-template-hash"


def path_of(kind: str, namespace: str, name: str = "") -> str:
    """The path of an object, or of all of its kind in a namespace."""
    group, plural = PATHS[kind]
    return f"{group}/namespaces/{namespace}/{plural}{f'/{name}' if name else ''}"


def machine(number: int) -> str:
    """The name of a Kubernetes node."""
    return f"machine-{number:02d}"


@dataclass
class Namespace:
    """What is in the namespace of a stack, by kind and name."""

    stack: Stack
    objects: dict[str, dict[str, Json]] = field(default_factory=lambda: {kind: {} for kind in PATHS})
    turning: bool = False
    changed: bool = False

    def pods(self, labels: Json) -> list[Json]:
        """The pods with these labels."""
        return [pod for pod in self.objects["Pod"].values() if labels.items() <= (pod["metadata"].get("labels") or {}).items()]


@dataclass
class Life:
    """One pod's: its process, and the order to stop."""

    process: Played
    stop: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class PlayedKubernetes:
    """All controllers and kubelets of a cluster whose stacks share the ZooKeeper at `zookeeper`."""

    api: ApiClient
    znodes: Znodes
    zookeeper: str
    namespaces: dict[str, Namespace] = field(default_factory=dict)
    lives: dict[str, Life] = field(default_factory=dict)
    """By the pods' uids."""

    async def run(self) -> None:
        for number in range(MACHINES):
            labels = {names.ZONE_LABEL: f"zone-{number % 3}"}
            await self.api.call("POST", "/api/v1/nodes", {"metadata": {"name": machine(number), "labels": labels}})
            status = {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": _now()}]}
            await self.api.call("PATCH", f"/api/v1/nodes/{machine(number)}/status", {"status": status})
        async with asyncio.TaskGroup() as self.group:
            self._later(self._tick())
            for kind, (prefix, plural) in PATHS.items():
                self._later(self.api.follow(f"{prefix}/{plural}", SELECTOR, partial(self._seen, kind)))

    def stack(self, namespace: str) -> Stack:
        """The servers of a namespace."""
        return self._namespace(namespace).stack

    async def kill(self, namespace: str, pod: str) -> None:
        """The process of a pod dies, and is not started again before `revive`. Its kubelet tells a moment later."""
        life = self._life(namespace, pod)
        life.process.die()
        self._later(self._tell_death(namespace, pod))

    async def revive(self, namespace: str, pod: str) -> None:
        """The kubelet starts the process of a pod again."""
        life = self._life(namespace, pod)
        if not life.stop.is_set() and pod not in life.process.stack.running:
            self._later(self._begin(life))

    def _life(self, namespace: str, pod: str) -> Life:
        return self.lives[self._namespace(namespace).objects["Pod"][pod]["metadata"]["uid"]]

    def _namespace(self, namespace: str) -> Namespace:
        if namespace not in self.namespaces:
            stack = Stack(namespace, self.zookeeper, self.znodes)
            stack.speaks.set()
            self.namespaces[namespace] = Namespace(stack)
        return self.namespaces[namespace]

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        """An error in it ends the player."""
        self.group.create_task(work)

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        second = int(loop.time())
        while True:
            second += 1
            await asyncio.sleep(second - loop.time())
            for namespace in self.namespaces.values():
                for process in namespace.stack.running.values():
                    if isinstance(process, SqlNode):
                        process.tick(second)

    # what is seen

    def _seen(self, kind: str, event: str, item: Json) -> None:
        namespace, name, uid = (item["metadata"][key] for key in ("namespace", "name", "uid"))
        known = self._namespace(namespace).objects[kind]
        if event == "DELETED":
            if known.get(name, item)["metadata"]["uid"] == uid:
                known.pop(name, None)
        else:
            self._store(kind, item)
        if kind == "Pod":
            self._pod_seen(item, gone=event == "DELETED")
        self._touch(namespace)

    def _store(self, kind: str, item: Json | None) -> None:
        """The newest of what a watch told and what a write was answered with."""
        if item is None:
            return
        known = self._namespace(item["metadata"]["namespace"]).objects[kind]
        before = known.get(item["metadata"]["name"])
        if before is None or int(before["metadata"]["resourceVersion"]) < int(item["metadata"]["resourceVersion"]):
            known[item["metadata"]["name"]] = item

    def _touch(self, namespace: str) -> None:
        here = self._namespace(namespace)
        here.changed = True
        if not here.turning:
            here.turning = True
            self._later(self._turn(here))

    async def _turn(self, here: Namespace) -> None:
        while here.changed:
            await asyncio.sleep(TURN_SECONDS)
            here.changed = False
            for item in list(here.objects["StatefulSet"].values()):
                await self._stateful_set(here, item)
            for item in list(here.objects["Deployment"].values()):
                await self._deployment(here, item)
            for item in list(here.objects["PodDisruptionBudget"].values()):
                await self._budget(here, item)
            for item in list(here.objects["PersistentVolumeClaim"].values()):
                if (item.get("status") or {}).get("phase") != "Bound":
                    await self._status("PersistentVolumeClaim", item, {"phase": "Bound", "capacity": item["spec"]["resources"]["requests"]})
        here.turning = False

    # controllers

    async def _stateful_set(self, here: Namespace, item: Json) -> None:
        metadata, spec = item["metadata"], item["spec"]
        revision = f"{metadata['name']}-{_hash(spec['template'])}"
        pods = [f"{metadata['name']}-{number}" for number in range(spec["replicas"])]
        for name in pods:
            if name not in here.objects["Pod"]:
                for template in spec.get("volumeClaimTemplates") or []:
                    await self._claim(here, template, name)
                await self._create_pod(item, name, {names.REVISION_LABEL: revision, names.POD_NAME_LABEL: name})
        found = [here.objects["Pod"][name] for name in pods if name in here.objects["Pod"]]
        new = [pod for pod in found if pod["metadata"]["labels"].get(names.REVISION_LABEL) == revision]
        status = {
            **_counts(item, found, new),
            "currentRevision": (item.get("status") or {}).get("currentRevision") or revision,
            "updateRevision": revision,
        }
        await self._status("StatefulSet", item, status)

    async def _deployment(self, here: Namespace, item: Json) -> None:
        metadata, spec = item["metadata"], item["spec"]
        template_hash = _hash(spec["template"])
        pods = [pod for pod in here.pods(spec["selector"]["matchLabels"]) if not pod["metadata"].get("deletionTimestamp")]
        new = [pod for pod in pods if pod["metadata"]["labels"].get(HASH_LABEL) == template_hash]
        for _ in range(spec["replicas"] - len(new)):
            await self._create_pod(item, f"{metadata['name']}-{template_hash}-{secrets.token_hex(3)}", {HASH_LABEL: template_hash})
        if len(new) == spec["replicas"] and all(map(is_ready, new)):
            for pod in pods:
                if pod not in new:
                    self._store("Pod", await self.api.call("DELETE", path_of("Pod", metadata["namespace"], pod["metadata"]["name"])))
        await self._status("Deployment", item, _counts(item, pods, new))

    async def _budget(self, here: Namespace, item: Json) -> None:
        pods = here.pods(item["spec"]["selector"]["matchLabels"])
        healthy = sum(map(is_ready, pods))
        desired = int(item["spec"].get("minAvailable", len(pods) - int(item["spec"].get("maxUnavailable", 1))))
        status = {
            "observedGeneration": item["metadata"]["generation"],
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": len(pods),
            "disruptionsAllowed": max(0, healthy - desired),
        }
        await self._status("PodDisruptionBudget", item, status)

    async def _claim(self, here: Namespace, template: Json, pod: str) -> None:
        name = f"{template['metadata']['name']}-{pod}"
        if name not in here.objects["PersistentVolumeClaim"]:
            body = {"metadata": {**template["metadata"], "name": name}, "spec": template["spec"]}
            self._store("PersistentVolumeClaim", await self.api.call("POST", path_of("PersistentVolumeClaim", here.stack.namespace), body))

    async def _create_pod(self, owner: Json, name: str, labels: Json) -> None:
        template, metadata = owner["spec"]["template"], owner["metadata"]
        claims = [claim["metadata"]["name"] for claim in owner["spec"].get("volumeClaimTemplates") or []]
        volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": f"{claim}-{name}"}} for claim in claims]
        kind = "StatefulSet" if "serviceName" in owner["spec"] else "Deployment"
        reference = {"apiVersion": "apps/v1", "kind": kind, "name": metadata["name"], "uid": metadata["uid"], "controller": True}
        pod = {
            "metadata": {
                "name": name,
                "labels": {**template["metadata"]["labels"], **labels},
                "annotations": template["metadata"].get("annotations") or {},
                "ownerReferences": [reference],
            },
            "spec": {**template["spec"], "volumes": [*(template["spec"].get("volumes") or []), *volumes]},
        }
        self._store("Pod", await self.api.call("POST", path_of("Pod", metadata["namespace"]), pod))

    async def _status(self, kind: str, item: Json, status: Json) -> None:
        """Written only where it differs."""
        if status.items() <= (item.get("status") or {}).items():
            return
        path = path_of(kind, item["metadata"]["namespace"], item["metadata"]["name"])
        self._store(kind, await self.api.call("PATCH", f"{path}/status", {"status": status}))

    # kubelets

    def _pod_seen(self, pod: Json, *, gone: bool) -> None:
        metadata = pod["metadata"]
        if gone:
            life = self.lives.pop(metadata["uid"], None)
            if life is not None:
                life.stop.set()
            return
        if metadata["uid"] not in self.lives:
            stack = self.stack(metadata["namespace"])
            life = self.lives[metadata["uid"]] = Life(KINDS[metadata["labels"][names.COMPONENT_LABEL]](stack, pod))
            self._later(self._live(life))
        if metadata.get("deletionTimestamp"):
            self.lives[metadata["uid"]].stop.set()

    async def _live(self, life: Life) -> None:
        namespace, name, uid = (life.process.pod["metadata"][key] for key in ("namespace", "name", "uid"))
        target = {"apiVersion": "v1", "kind": "Node", "name": machine(_number_of(namespace, name) % MACHINES)}
        await self.api.call("POST", f"{path_of('Pod', namespace, name)}/binding", {"metadata": {"name": name}, "target": target})
        await self._pod_status(life, "Pending", {"waiting": {"reason": "ContainerCreating"}})
        await asyncio.sleep(PULL_SECONDS)
        await self._begin(life)
        await life.stop.wait()
        await asyncio.sleep(STOP_SECONDS)
        await life.process.stop()
        if uid in self.lives:
            await self._pod_status(life, "Running", {"terminated": {"exitCode": 143, "reason": "Error"}})
            body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
            await self.api.call("DELETE", path_of("Pod", namespace, name), body)

    async def _begin(self, life: Life) -> None:
        process = life.process
        if isinstance(process, SqlNode):
            secret = await self.api.call("GET", f"/api/v1/namespaces/{process.stack.namespace}/secrets/{process.stack.db.generated_secret}")
            process.users = revision_of(base64.b64decode((secret or {"data": {}})["data"].get(names.USERS_KEY, "")).decode())
        await process.start()
        await self._pod_status(life, "Running", {"running": {"startedAt": _now()}})
        await asyncio.sleep(READY_SECONDS)
        if not life.stop.is_set() and process.name in process.stack.running:
            await self._pod_status(life, "Running", {"running": {"startedAt": _now()}}, ready=True)

    async def _tell_death(self, namespace: str, pod: str) -> None:
        await asyncio.sleep(TOLD_SECONDS)
        life = self._life(namespace, pod)
        if pod not in life.process.stack.running:
            await self._pod_status(life, "Running", {"waiting": {"reason": "CrashLoopBackOff"}})

    async def _pod_status(self, life: Life, phase: str, state: Json, *, ready: bool = False) -> None:
        metadata, (container,) = life.process.pod["metadata"], life.process.pod["spec"]["containers"]
        told = {"name": container["name"], "image": container["image"], "imageID": container["image"], "restartCount": 0}
        conditions = {"PodScheduled": True, "Initialized": True, "ContainersReady": ready, "Ready": ready}
        status: Json = {
            "phase": phase,
            "containerStatuses": [{**told, "ready": ready, "started": "running" in state, "state": state}],
            "conditions": [{"type": kind, "status": str(holds), "lastTransitionTime": _now()} for kind, holds in conditions.items()],
        }
        if phase == "Running":
            address = address_of(metadata["namespace"], metadata["name"])
            status |= {"podIP": address, "podIPs": [{"ip": address}], "startTime": _now()}
        path = f"{path_of('Pod', metadata['namespace'], metadata['name'])}/status"
        self._store("Pod", await self.api.call("PATCH", path, {"status": status}))
        self._touch(metadata["namespace"])


def _counts(item: Json, pods: list[Json], new: list[Json]) -> Json:
    ready = sum(map(is_ready, pods))
    return {
        "observedGeneration": item["metadata"]["generation"],
        "replicas": len(pods),
        "updatedReplicas": len(new),
        "readyReplicas": ready,
        "availableReplicas": ready,
    }


def _number_of(namespace: str, pod: str) -> int:
    """Spreads the pods of a stack over machines, and stacks over other ones."""
    octets = address_of(namespace, pod).split(".")
    return 3 * int(octets[2]) + int(octets[3])


def _hash(template: Json) -> str:
    return hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:10]


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
