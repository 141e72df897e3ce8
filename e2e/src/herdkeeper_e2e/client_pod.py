"""What the scenarios' pods next to the database share: they are restricted, and serve nobody."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Mapping

from herdkeeper.shared.names import MANAGED_BY_LABEL, MANAGER
from herdkeeper_e2e.conditions import pod_problem
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

START = Limit(300)
CLIENT_LABELS = {"herdkeeper-e2e": "client"}
ADMISSION: Object = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "e2e-clients"},
    "spec": {
        "podSelector": {"matchLabels": {MANAGED_BY_LABEL: MANAGER}},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": {"matchLabels": CLIENT_LABELS}}]}],
    },
}
"""Lets these pods reach all ports of the operator's pods: they read metadata, logs and admin ports. kind's nodes enforce policies."""


def client_pod(name: str, container: Object, volumes: list[Object], machine: str | None = None) -> Object:
    """Returns the manifest of the pod `name` with one container, on the machine `machine`, if given. Its label is the container's name."""
    restricted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    security = {"runAsNonRoot": True, "runAsUser": 10001, "fsGroup": 10001, "seccompProfile": {"type": "RuntimeDefault"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": container["name"], **CLIENT_LABELS}},
        "spec": {
            **({"nodeName": machine} if machine else {}),
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 1,
            "securityContext": security,
            "containers": [{"imagePullPolicy": "IfNotPresent", "securityContext": restricted, **container}],
            "volumes": volumes,
        },
    }


def start_pod(kubectl: Kubectl, manifest: Object) -> None:
    """Create the pod unless it exists, admit it, and wait until it runs."""
    kubectl.apply(ADMISSION)
    start_stranger(kubectl, manifest)


def start_stranger(kubectl: Kubectl, manifest: Object) -> None:
    """As `start_pod`, and admit it nowhere."""
    name = manifest["metadata"]["name"]

    def running() -> Object | Pending:
        pod = kubectl.get("pod", name)
        if pod is None:
            return Pending("there is no pod")
        problem = pod_problem(pod)
        return Pending(problem) if problem else pod

    kubectl.apply(manifest)
    wait_for(f"the start of the pod {name}", running, START)


def packed(files: Mapping[str, bytes]) -> bytes:
    """Returns a tar archive of executable files, by their paths in it."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode, entry.mtime = len(content), 0o755, time.time()
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def copy_into(kubectl: Kubectl, pod: str, folder: str, files: Mapping[str, bytes]) -> None:
    """Write files below a folder of a pod whose image has Python."""
    unpack = f"import sys, tarfile; tarfile.open(fileobj=sys.stdin.buffer, mode='r|').extractall('{folder}')"
    kubectl.exec(pod, "python3", "-c", unpack, stdin=packed(files))
