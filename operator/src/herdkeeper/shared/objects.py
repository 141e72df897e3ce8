"""The live Kubernetes objects of one resource, as the API server answered."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from herdkeeper.shared import names

Json = dict[str, Any]
STARTING = "starting"
"""The trouble of a pod of which Kubernetes tells none."""


@dataclass(frozen=True)
class Objects:
    """Objects by (kind, name). All of one namespace, and all with the labels of one owner."""

    items: Mapping[tuple[str, str], Json]

    def get(self, kind: str, name: str) -> Json | None:
        """An object, None when there is none."""
        return self.items.get((kind, name))

    def of_kind(self, kind: str) -> tuple[Json, ...]:
        """All objects of a kind, sorted by name."""
        return tuple(item for (found, _), item in sorted(self.items.items(), key=lambda pair: pair[0]) if found == kind)

    def pod_of(self, stateful_set: str, name: str) -> Json | None:
        """A pod that the StatefulSet made; None where there is none, or another one of that name and with its labels."""
        pod = self.get("Pod", name)
        return pod if pod is not None and is_controlled_by(pod, self.get("StatefulSet", stateful_set)) else None

    def pod_ready(self, name: str) -> bool:
        """Whether a pod is there, Ready, and not about to go."""
        pod = self.get("Pod", name)
        return pod is not None and is_ready(pod)

    def rolled_out(self, stateful_set: str) -> bool:
        """Whether its controller has seen the StatefulSet as it is now and made every pod from its present template.

        Until then, a Ready pod may be an old one that is about to be restarted.
        """
        item = self.get("StatefulSet", stateful_set)
        status = item.get("status", {}) if item is not None else {}
        if item is None or (status.get("observedGeneration") or 0) < item["metadata"].get("generation", 0):
            return False
        return bool(status.get("currentRevision") == status.get("updateRevision"))

    def revision(self, stateful_set: str) -> str | None:
        """The revision of a StatefulSet's present template; None while its controller has not seen it as it is now."""
        item = self.get("StatefulSet", stateful_set)
        status = item.get("status", {}) if item is not None else {}
        if item is None or (status.get("observedGeneration") or 0) < item["metadata"].get("generation", 0):
            return None
        return status.get("updateRevision")

    def outdated(self, pod: str, revision: str) -> bool:
        """Whether a pod was made from another revision of its StatefulSet's template. One that is not there is not; of one without a
        revision nothing is known."""
        made_from = ((self.get("Pod", pod) or {"metadata": {}})["metadata"].get("labels") or {}).get(names.REVISION_LABEL)
        return made_from not in (None, revision)


def is_controlled_by(item: Json, controller: Json | None) -> bool:
    """Whether an object is the controller's by its uid: labels and names, anybody can give to a pod."""
    uid = None if controller is None else controller["metadata"].get("uid")
    owners = item["metadata"].get("ownerReferences") or []
    return uid is not None and any(owner.get("controller") and owner["uid"] == uid for owner in owners)


def ip_address(pod: Json) -> str | None:
    """The address of a pod as it stands in a URL; None before it has one."""
    address = (pod.get("status") or {}).get("podIP")
    return f"[{address}]" if address and ":" in address else address or None


def is_ready(item: Json) -> bool:
    """Whether the condition Ready holds and the object is not being deleted."""
    if item["metadata"].get("deletionTimestamp"):
        return False
    conditions = item.get("status", {}).get("conditions") or []
    return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)


def job_ended(job: Json) -> str | None:
    """`Complete` or `Failed` when a Job has ended, else None."""
    for entry in job.get("status", {}).get("conditions") or []:
        if entry["type"] in ("Complete", "Failed") and entry["status"] == "True":
            return str(entry["type"])
    return None


def pods_of_job(objects: Objects, job_name: str) -> tuple[Json, ...]:
    """The pods that a Job started, the oldest first."""
    found = (pod for pod in objects.of_kind("Pod") if (pod["metadata"].get("labels") or {}).get("batch.kubernetes.io/job-name") == job_name)
    return tuple(sorted(found, key=lambda pod: str(pod["metadata"]["creationTimestamp"])))


def termination_message_of(objects: Objects, job_name: str) -> str | None:
    """The termination message of a Job's last driver; None when it has left none. What earlier ones said is no longer true."""
    _, driver = _last_driver(objects, job_name)
    return driver.get("message") or None


def why_no_termination_message(objects: Objects, job_name: str) -> str | None:
    """How a Job's last driver ended without a termination message; None when it left one, or has not ended as far as is known."""
    pod, driver = _last_driver(objects, job_name)
    if pod.get("phase") != "Failed" or driver.get("message"):
        return None
    if driver:
        return f"{driver.get('reason', 'Error')}, exit code {driver.get('exitCode')}"
    return f"{pod.get('reason', 'Failed')}: {pod.get('message', 'no reason given')}"


def _last_driver(objects: Objects, job_name: str) -> tuple[Json, Json]:
    """The status of a Job's newest pod, and how its driver ended there; empty where there is none."""
    pod: Json = next((pod.get("status", {}) for pod in reversed(pods_of_job(objects, job_name))), {})
    drivers = (container for container in pod.get("containerStatuses") or [] if container["name"] == "driver")
    return pod, next((container.get("state", {}).get("terminated") or {} for container in drivers), {})


def is_made_for(item: Json, owner_kind: str, owner_name: str) -> bool:
    """Whether an object carries the labels of what the operator makes for this resource; else it is a stranger's."""
    labels = item["metadata"].get("labels") or {}
    return (labels.get(names.OWNER_KIND_LABEL), labels.get(names.OWNER_NAME_LABEL)) == (owner_kind, owner_name)


def annotation(item: Json, name: str) -> str | None:
    """An annotation's value, None when it is not there."""
    value = (item["metadata"].get("annotations") or {}).get(name)
    return None if value is None else str(value)


def why_gone(pod: Json | None) -> str | None:
    """Why the process of a pod has ended or never began, as Kubernetes tells it; None when it runs as far as is known."""
    if pod is None:
        return "its pod is gone"
    status = pod.get("status", {})
    if status.get("phase") in ("Failed", "Succeeded"):
        return f"its pod has ended ({status.get('reason') or status['phase']})"
    containers = status.get("containerStatuses") or []
    if status.get("phase") == "Pending" and not containers:
        return "its pod waits for a node or a volume"
    for container in containers:
        state = container.get("state", {})
        if "terminated" in state:
            ended = state["terminated"]
            return f"its container has ended ({ended.get('reason', 'Error')}, exit code {ended.get('exitCode')})"
        if "waiting" in state:
            return f"its container does not run ({state['waiting'].get('reason', 'waiting')})"
    return None


def why_stopping(pod: Json | None) -> str | None:
    """Why a pod that may still serve is about to stop; None when it is not."""
    return "its pod is being deleted" if pod is not None and pod["metadata"].get("deletionTimestamp") else None


MAX_MESSAGE_LENGTH = 250
"""Characters of what a container said last, for conditions."""
_FRAME = re.compile(r"\s+(at |\.\.\. \d+ more)")
_FAILURE = re.compile(r"Exception|Error|ERROR|refused: ")
_OUT_OF_MEMORY = re.compile(r"java\.lang\.OutOfMemoryError: ([\w ]+)")
_MEMORY_FIELDS = {
    names.ZOOKEEPER_COMPONENT: "spec.resources.memory",
    names.BOOKIE_COMPONENT: "spec.resources.memory",
    names.HERDDB_COMPONENT: "spec.resources.memory",
    names.AUTORECOVERY_COMPONENT: "spec.autoRecovery.resources.memory",
    names.ARCHIVE_COMPONENT: "spec.log.archive.resources.memory",
}
"""What a person raises for a component that runs out of memory."""


@dataclass(frozen=True)
class Stopping:
    """When a pod that is being deleted was asked to stop, and when it is killed at the latest, in seconds since 1970."""

    asked_at: float
    killed_at: float


def stopping(pod: Json | None) -> Stopping | None:
    """When the processes of a pod end; None for one that is not being deleted."""
    metadata = pod["metadata"] if pod is not None else {}
    if not metadata.get("deletionTimestamp"):
        return None
    killed_at = datetime.datetime.fromisoformat(metadata["deletionTimestamp"]).timestamp()
    return Stopping(killed_at - (metadata.get("deletionGracePeriodSeconds") or 0), killed_at)


def pod_trouble(pod: Json | None) -> str:
    """Why a pod is not Ready, as a phrase for people."""
    if pod is None:
        return "no pod"
    if pod["metadata"].get("deletionTimestamp"):
        return "stopping"
    status = pod.get("status", {})
    failed: Json = next((container for container in status.get("containerStatuses") or [] if not container.get("ready")), {})
    ended = _last_failure(failed, pod)
    waiting = failed.get("state", {}).get("waiting") or {}
    if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
        return f"{waiting['reason']}; {ended}" if ended else f"{waiting['reason']} {waiting.get('message', '')}".strip()[:200]
    for entry in status.get("conditions") or []:
        if entry["type"] == "PodScheduled" and entry["status"] == "False":
            return f"{entry.get('reason', 'not scheduled')}: {entry.get('message', '')}"[:200]
    if ended and "terminated" in failed.get("state", {}):
        return ended
    return f"{STARTING}; {ended}" if ended else STARTING


def _last_failure(container: Json, pod: Json) -> str:
    """How a container's process failed last, in one line; empty where none did."""
    ended = container.get("state", {}).get("terminated") or container.get("lastState", {}).get("terminated") or {}
    if not ended.get("exitCode"):
        return ""
    said = _most_telling_line(str(ended.get("message") or ""))
    heap = _OUT_OF_MEMORY.search(said)
    if heap or ended.get("reason") == "OOMKilled":
        component = (pod["metadata"].get("labels") or {}).get(names.COMPONENT_LABEL, "")
        return f"it ran out of memory ({heap[1] if heap else 'OOMKilled'}): raise {_MEMORY_FIELDS.get(component, 'its memory')}"
    return f"it ended with exit code {ended['exitCode']}{f': {said}' if said else ''}"[:MAX_MESSAGE_LENGTH]


def _most_telling_line(message: str) -> str:
    """The last line that tells of a failure, or else the last one; not where in the program it was."""
    lines = [line.strip() for line in message.splitlines() if line.strip() and not _FRAME.match(line)]
    return next((line for line in reversed(lines) if _FAILURE.search(line)), lines[-1] if lines else "")
