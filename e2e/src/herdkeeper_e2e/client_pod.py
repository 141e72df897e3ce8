"""What all pods have in common that the scenarios start beside the database: restricted, and at nobody's service but theirs."""

from __future__ import annotations

import json

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
"""Lets these pods reach all ports of what the operator makes: they read metadata, logs and admin ports. kind's own nodes
enforce policies."""


def client_pod(name: str, container: Object, volumes: list[Object], machine: str | None = None) -> Object:
    """The manifest of the pod `name` with one container, on the machine `machine` where one is named. Its label is the container's name."""
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
    """Makes the pod unless it is there, has it let in, and waits until it runs."""
    name = manifest["metadata"]["name"]

    def running() -> Object | Pending:
        pod = kubectl.get("pod", name)
        if pod is None:
            return Pending("there is no pod")
        problem = pod_problem(pod)
        return Pending(problem) if problem else pod

    kubectl.apply(json.dumps(ADMISSION))
    kubectl.apply(json.dumps(manifest))
    wait_for(f"the start of the pod {name}", running, START)
