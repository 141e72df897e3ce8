"""Live Kubernetes objects of one resource, as the API server returned them."""

from __future__ import annotations

import datetime
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from herdkeeper.shared import names
from herdkeeper.shared.volumes import Claim

Json = dict[str, Any]
STARTING = "starting"
"""The trouble of a pod for which Kubernetes reports none."""


@dataclass(frozen=True)
class Objects:
    """Objects by (kind, name), all in one namespace and with the labels of one owner."""

    items: Mapping[tuple[str, str], Json]

    def get(self, kind: str, name: str) -> Json | None:
        return self.items.get((kind, name))

    def of_kind(self, kind: str) -> tuple[Json, ...]:
        """Returns all objects of a kind, sorted by name."""
        return tuple(item for (found, _), item in sorted(self.items.items(), key=lambda pair: pair[0]) if found == kind)

    def data(self, kind: str, name: str) -> Mapping[str, str]:
        """Returns the entries of a ConfigMap, or those of a Secret in base64; empty if it does not exist."""
        return (self.get(kind, name) or {}).get("data") or {}

    @cached_property
    def claims(self) -> Mapping[str, Claim]:
        """All volume claims, by name and sorted by it."""
        return {item["metadata"]["name"]: Claim.of(item) for item in self.of_kind("PersistentVolumeClaim")}

    def pod_of(self, stateful_set: str, name: str) -> Json | None:
        """Returns a pod of the StatefulSet, or None. An unrelated pod with that name and those labels does not count."""
        pod = self.get("Pod", name)
        return pod if pod is not None and is_controlled_by(pod, self.get("StatefulSet", stateful_set)) else None

    def pod_ready(self, name: str) -> bool:
        """Returns whether a pod exists, is Ready, and is not being deleted."""
        pod = self.get("Pod", name)
        return pod is not None and is_ready(pod)

    def rolled_out(self, stateful_set: str) -> bool:
        """Whether the controller has seen the current StatefulSet and made every pod from it. Else a Ready pod may be an old one."""
        item = self.get("StatefulSet", stateful_set)
        if item is None or self.is_template_unseen(stateful_set):
            return False
        status = item.get("status", {})
        return bool(status.get("currentRevision") == status.get("updateRevision"))

    def revision(self, stateful_set: str) -> str | None:
        """Returns the revision of a StatefulSet's current template, or None while its controller has not seen it."""
        item = self.get("StatefulSet", stateful_set)
        return None if item is None or self.is_template_unseen(stateful_set) else item.get("status", {}).get("updateRevision")

    def is_template_unseen(self, stateful_set: str) -> bool:
        """Returns whether a StatefulSet has a template that its controller has not seen yet."""
        item = self.get("StatefulSet", stateful_set) or {"metadata": {}}
        return bool((item.get("status", {}).get("observedGeneration") or 0) < item["metadata"].get("generation", 0))

    def outdated(self, pod: str, revision: str) -> bool:
        """Returns whether a pod was made from another revision of the template. False for a missing pod, or one without a revision."""
        item = self.get("Pod", pod)
        return item is not None and label(item, names.REVISION_LABEL) not in (None, revision)


def is_controlled_by(item: Json, controller: Json | None) -> bool:
    """Returns whether the controller owns an object, by uid: anybody can give a pod labels and a name."""
    uid = None if controller is None else controller["metadata"].get("uid")
    return uid is not None and _controller_of(item) == uid


def is_owned_by(item: Json, uid: str) -> bool:
    """Returns whether the resource of this uid owns an object. One of the same name may have owned it before."""
    return any(reference["uid"] == uid for reference in item["metadata"].get("ownerReferences") or [])


def mounts(pod: Json, secret: str) -> bool:
    volumes = pod.get("spec", {}).get("volumes") or []
    return any((volume.get("secret") or {}).get("secretName") == secret for volume in volumes)


def ip_address(pod: Json) -> str | None:
    """Returns a pod's address as written in a URL, or None before it has one."""
    address = (pod.get("status") or {}).get("podIP")
    return f"[{address}]" if address and ":" in address else address or None


def is_ready(item: Json) -> bool:
    """Returns whether an object has the condition Ready and is not being deleted."""
    if item["metadata"].get("deletionTimestamp"):
        return False
    conditions = item.get("status", {}).get("conditions") or []
    return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)


@dataclass(frozen=True)
class JobEnd:
    """How a Job ended, and when. `reason` and `message` explain a failure."""

    failed: bool
    at: str | None
    reason: str
    message: str | None


def job_ended(job: Json) -> JobEnd | None:
    status = job.get("status", {})
    for entry in status.get("conditions") or []:
        if entry["type"] in ("Complete", "Failed") and entry["status"] == "True":
            failed = entry["type"] == "Failed"
            at = entry.get("lastTransitionTime") if failed else status.get("completionTime")
            return JobEnd(failed, at, entry.get("reason", "Failed"), entry.get("message"))
    return None


def pods_of_job(objects: Objects, job_name: str) -> tuple[Json, ...]:
    """Returns the pods of a Job, oldest first, without those that an earlier Job of this name left."""
    uid = (objects.get("Job", job_name) or {"metadata": {}})["metadata"].get("uid")
    named = (pod for pod in objects.of_kind("Pod") if label(pod, names.JOB_NAME_LABEL) == job_name)
    found = (pod for pod in named if uid in (None, _controller_of(pod) or uid))
    return tuple(sorted(found, key=lambda pod: str(pod["metadata"]["creationTimestamp"])))


def _controller_of(item: Json) -> str | None:
    """Returns the uid of the controller that owns an object, or None."""
    return next((owner["uid"] for owner in item["metadata"].get("ownerReferences") or [] if owner.get("controller")), None)


def termination_message_of(objects: Objects, job_name: str) -> str | None:
    """Returns the termination message of a Job's last driver, or None. Earlier drivers' messages are outdated: also that of a failed one
    of a Job that succeeded, whose last pod is gone.
    """
    _, driver = _last_driver(objects, job_name)
    ended = job_ended(objects.get("Job", job_name) or {})
    if driver is None or (driver.exit_code and ended is not None and not ended.failed):
        return None
    return driver.message or None


def why_no_termination_message(objects: Objects, job_name: str) -> str | None:
    """Returns how a Job's last driver ended without a termination message. None if it left one or may still run."""
    pod, driver = _last_driver(objects, job_name)
    if pod.get("phase") != "Failed" or (driver is not None and driver.message):
        return None
    if driver is not None:
        return f"{driver.reason}, exit code {driver.exit_code}"
    return f"{pod.get('reason', 'Failed')}: {pod.get('message', 'no reason given')}"


def _last_driver(objects: Objects, job_name: str) -> tuple[Json, Ended | None]:
    """Returns the status of a Job's newest pod, empty if there is none, and how its driver ended there."""
    pod: Json = next(reversed(pods_of_job(objects, job_name)), {})
    return pod.get("status", {}), next((ended for ended in ended_in(pod) if ended.container == "driver" and ended.is_current), None)


@dataclass(frozen=True)
class Ended:
    """How a process of a container ended. `is_current`: this is its present state. `ready`: it is ready again, or its pod was since."""

    container: str
    is_current: bool
    ready: bool
    exit_code: int | None
    reason: str
    message: str


def ended_in(pod: Json | None, kind: str = "containerStatuses") -> Iterator[Ended]:
    """Yields how processes of a pod's containers ended, for each container the newest first. Nothing if there is no pod."""
    status = (pod or {}).get("status", {})
    conditions = status.get("conditions") or []
    unready_since = next((entry.get("lastTransitionTime") or "" for entry in conditions if entry["type"] == "Ready"), "")
    for container in status.get(kind) or []:
        for state in ("state", "lastState"):
            if ended := (container.get(state) or {}).get("terminated"):
                how = ended.get("exitCode"), ended.get("reason", "Error"), str(ended.get("message") or "")
                ready = bool(container.get("ready")) or "" < str(ended.get("finishedAt") or "") < unready_since
                yield Ended(container.get("name", ""), state == "state", ready, *how)


def is_made_for(item: Json, owner_kind: str, owner_name: str) -> bool:
    """Returns whether an object carries the labels of this resource's objects. Otherwise it is not the operator's."""
    return (label(item, names.OWNER_KIND_LABEL), label(item, names.OWNER_NAME_LABEL)) == (owner_kind, owner_name)


def label(item: Json, name: str) -> str | None:
    value = (item["metadata"].get("labels") or {}).get(name)
    return None if value is None else str(value)


def annotation(item: Json, name: str) -> str | None:
    value = (item["metadata"].get("annotations") or {}).get(name)
    return None if value is None else str(value)


_SERVERS = frozenset({"bookie", "herddb", "zookeeper"})
"""The containers of servers. Somebody may add others to their pods, such as a service mesh does: those don't count."""


def why_gone(pod: Json | None) -> str | None:
    """Returns why a server's process has ended or never started, by Kubernetes. None if it runs as far as is known."""
    if pod is None:
        return "its pod is gone"
    status = pod.get("status", {})
    if status.get("phase") in ("Failed", "Succeeded"):
        return f"its pod has ended ({status.get('reason') or status['phase']})"
    containers = status.get("containerStatuses") or []
    if status.get("phase") == "Pending" and not containers:
        return "its pod is waiting for a node or a volume"
    for container in (each for each in containers if each.get("name") in (None, *_SERVERS)):
        state = container.get("state") or {}
        if "terminated" in state:
            ended = state["terminated"]
            return f"its container has ended ({ended.get('reason', 'Error')}, exit code {ended.get('exitCode')})"
        if "waiting" in state:
            return f"its container is not running ({state['waiting'].get('reason', 'waiting')})"
    return None


def why_stopping(pod: Json | None) -> str | None:
    """Returns why a pod that may still serve is about to stop, or None."""
    return "its pod is being deleted" if pod is not None and pod["metadata"].get("deletionTimestamp") else None


MAX_MESSAGE_LENGTH = 250
"""Characters of a container's last output, for conditions."""
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
"""The field to raise for a component that runs out of memory."""


@dataclass(frozen=True)
class Stopping:
    """When a pod that is being deleted was asked to stop, and when it is killed at the latest, in Unix seconds."""

    asked_at: float
    killed_at: float


def stopping(pod: Json | None) -> Stopping | None:
    """Returns when the processes of a pod stop, or None if it is not being deleted."""
    metadata = pod["metadata"] if pod is not None else {}
    if not metadata.get("deletionTimestamp"):
        return None
    killed_at = datetime.datetime.fromisoformat(metadata["deletionTimestamp"]).timestamp()
    return Stopping(killed_at - (metadata.get("deletionGracePeriodSeconds") or 0), killed_at)


def pod_trouble(pod: Json | None) -> str:
    """Returns why a pod is not Ready, as a phrase."""
    if pod is None:
        return "no pod, see its controller's events"
    if pod["metadata"].get("deletionTimestamp"):
        return "stopping"
    status = pod.get("status", {})
    if status.get("phase") == "Failed" and status.get("reason"):
        return shortened(f"{status['reason']}: {status.get('message', '')}".rstrip(": "))
    failed = not_ready_container(pod)
    ended = _last_failure(failed, pod)
    waiting = failed.get("state", {}).get("waiting") or {}
    if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
        return f"{waiting['reason']}; {ended}" if ended else shortened(f"{waiting['reason']} {waiting.get('message', '')}".strip())
    for entry in status.get("conditions") or []:
        if entry["type"] == "PodScheduled" and entry["status"] == "False":
            return shortened(f"{entry.get('reason', 'not scheduled')}: {entry.get('message', '')}")
    starts = () if ended and "terminated" in failed.get("state", {}) else (STARTING,)
    return "; ".join((*starts, *filter(None, (ended,))))


def not_ready_container(pod: Json) -> Json:
    """Returns the status of the first container of a pod that is not ready, init containers first; empty if there is none."""
    status = pod.get("status") or {}
    containers = (container for kind in ("initContainerStatuses", "containerStatuses") for container in status.get(kind) or [])
    return next((container for container in containers if not container.get("ready")), {})


def shortened(text: str) -> str:
    """Returns a text of at most MAX_MESSAGE_LENGTH characters, which ends with a whole word."""
    return textwrap.shorten(text, MAX_MESSAGE_LENGTH, placeholder=" …")


def _last_failure(container: Json, pod: Json) -> str:
    """Returns how a container's process failed last, in one line, or an empty string."""
    ended = container.get("state", {}).get("terminated") or container.get("lastState", {}).get("terminated") or {}
    if not ended.get("exitCode"):
        return ""
    said = _failure_line(str(ended.get("message") or ""))
    heap = _OUT_OF_MEMORY.search(said)
    if heap or ended.get("reason") == "OOMKilled":
        component = label(pod, names.COMPONENT_LABEL) or ""
        return f"it ran out of memory ({heap[1] if heap else 'OOMKilled'}): raise {_MEMORY_FIELDS.get(component, 'its memory')}"
    return shortened(f"it ended with exit code {ended['exitCode']}{f': {said}' if said else ''}")


def _failure_line(message: str) -> str:
    """Returns the last line about a failure, else the last line. Lines of a stack trace don't count."""
    texts = [text for line in message.splitlines() for text in _logged(line).splitlines()]
    lines = [line.strip() for line in texts if line.strip() and not _FRAME.match(line)]
    return next((line for line in reversed(lines) if _FAILURE.search(line)), lines[-1] if lines else "")


def _logged(line: str) -> str:
    """Returns the message of a line of a log in JSON, and its exception; other lines as they are."""
    try:
        found = json.loads(line) if line.startswith("{") else None
    except (ValueError, RecursionError):
        return line
    return line if not isinstance(found, dict) else f"{found.get('message') or ''}\n{found.get('exception') or ''}".strip()
