"""What all pods of the operator share: security, spreading, volumes, and how configuration changes reach them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import assert_never

from herdkeeper.api.pods import Pods, PodTraits, Spread
from herdkeeper.api.resource import API_VERSION, Compute, Resource, VolumeClaim
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json

USER_ID = 10001
"""User and group of every image; volumes belong to the group. Unless the platform assigns both."""

CONTAINER_SECURITY: Json = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
_IDS: Json = {"runAsUser": USER_ID, "runAsGroup": USER_ID, "fsGroup": USER_ID}
_POD_SECURITY: Json = {
    "runAsNonRoot": True,
    "fsGroupChangePolicy": "OnRootMismatch",
    "seccompProfile": {"type": "RuntimeDefault"},
}
TEMPORARY_VOLUME: Json = {"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}}
"""Holds a server's configuration and native libraries. A pod that fills it is evicted before the node's disk is full."""
UNLIMITED_TEMPORARY_VOLUME: Json = {"name": "tmp", "emptyDir": {}}
"""For Spark, which spills to it."""
TEMPORARY_MOUNT: Json = {"name": "tmp", "mountPath": "/tmp"}  # noqa: S108 - inside the container, a volume of its own
CONFIG_MOUNT: Json = {"name": "config", "mountPath": "/config", "readOnly": True}


def metadata(owner: Resource, component: str, name: str) -> Json:
    """Returns the metadata of an object that is deleted with its owner."""
    reference = {
        "apiVersion": API_VERSION,
        "kind": owner.KIND,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {**retained_metadata(owner, component, name), "ownerReferences": [reference]}


def retained_metadata(owner: Resource, component: str, name: str) -> Json:
    """Returns the metadata of an object with data or passwords. It has no owner, so it survives the owner's deletion."""
    return {
        "name": name,
        "namespace": owner.metadata.namespace,
        "labels": names.labels(component, owner.KIND, owner.metadata.name),
    }


def config_hash(data: Mapping[str, str]) -> str:
    """Returns a short hash of configuration files. It is part of the pod template, so that a changed configuration rolls the pods."""
    return hashlib.sha256(json.dumps(dict(data), sort_keys=True).encode()).hexdigest()[:16]


def properties(lines: Mapping[str, object], more: Mapping[str, str]) -> str:
    """Returns a file of `key=value` lines. `more` (the user's, validated) comes last and wins."""
    return "".join(f"{key}={value}\n" for key, value in {**lines, **more}.items())


def compute(resources: Compute) -> Json:
    """Requests and limits. There is no CPU limit unless the resource sets one: throttled servers miss heartbeats."""
    return {
        "requests": {"cpu": resources.cpu, "memory": resources.memory, **resources.requests},
        "limits": {"memory": resources.memory, **resources.limits},
    }


def claim_spec(volume: VolumeClaim) -> Json:
    spec: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": volume.size}}}
    return spec if volume.storage_class_name is None else {**spec, "storageClassName": volume.storage_class_name}


KEPT_CLAIMS: Json = {"whenDeleted": "Retain", "whenScaled": "Retain"}
"""What a StatefulSet does with its claims. It is Kubernetes' default; stated, so that what somebody else sets is put back: the StatefulSet
goes with its resource, and would take all volumes along under deletionPolicy Retain, too."""


def config_volume(config_map: str) -> Json:
    return {"name": "config", "configMap": {"name": config_map}}


def template_metadata(labels: Mapping[str, str], annotations: Mapping[str, str], pods: PodTraits) -> Json:
    """Metadata of a pod template: the operator's, and what the resource adds under other keys."""
    found = {"labels": {**pods.labels, **labels}, "annotations": {**pods.annotations, **annotations}}
    return {name: value for name, value in found.items() if value}


def placed(selector: Mapping[str, str], pods: Pods) -> Json:
    """Placement of pods: spread over zones, then nodes, and as the resource says.

    Spreading is only preferred, unless the resource demands it, so that a small cluster still runs everything.
    """
    chosen = {"matchLabels": dict(selector)}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": chosen}
    anti_affinity: Json
    match pods.anti_affinity:
        case "Preferred":
            anti_affinity = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}
        case "Required":
            anti_affinity = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        case never:
            assert_never(never)
    spreads = pods.topology_spread_constraints or (Spread(topology_key=names.ZONE_LABEL, max_skew=1, when_unsatisfiable="ScheduleAnyway"),)
    return {
        "topologySpreadConstraints": [{**spread.model_dump(by_alias=True), "labelSelector": chosen} for spread in spreads],
        "affinity": {"podAntiAffinity": anti_affinity},
        **admitted(pods),
    }


def admitted(pods: PodTraits) -> Json:
    """Scheduling and image pull settings. Also for Jobs, whose pods are not spread."""
    spec: Json = {
        "nodeSelector": dict(pods.node_selector),
        "tolerations": [toleration.model_dump(by_alias=True, exclude_none=True) for toleration in pods.tolerations],
        "priorityClassName": pods.priority_class_name,
        "imagePullSecrets": [{"name": secret.name} for secret in pods.image_pull_secrets],
    }
    # Absent rather than empty: a changed template would restart servers for nothing.
    return {name: value for name, value in spec.items() if value}


def log_variables(pods: Pods) -> list[Json]:
    """How a server writes its log. Absent rather than text: a changed template would restart servers for nothing."""
    return [{"name": "LOG_FORMAT", "value": "JSON"}] if pods.log_format == "JSON" else []


def pod_security(owner: Resource) -> Json:
    """Security of a resource's pods. Meets OpenShift's restricted-v2 without ids of its own: that one assigns them to each namespace."""
    return _POD_SECURITY if owner.assigned_ids else {**_POD_SECURITY, **_IDS}


def pod_spec(owner: Resource, container: Json, volumes: list[Json], grace_seconds: int, temporary: Json = TEMPORARY_VOLUME) -> Json:
    """A pod of one container, without privileges and without a token."""
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": grace_seconds,
        "securityContext": pod_security(owner),
        "containers": [secured(container)],
        "volumes": [*volumes, temporary],
    }


def secured(container: Json) -> Json:
    """A container without privileges, with room for temporary files. If it fails, its pod's status shows its last lines."""
    mounts = [*container.get("volumeMounts", []), TEMPORARY_MOUNT]
    return {
        "imagePullPolicy": "IfNotPresent",
        "securityContext": CONTAINER_SECURITY,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **container,
        "volumeMounts": mounts,
    }


def literal(text: str) -> str:
    """Returns a text as an argument or variable is written: Kubernetes replaces `$(NAME)` there by another variable, e.g. a password."""
    return text.replace("$", "$$")


def meant(text: str) -> str:
    """Returns the text of which `literal` made this one."""
    return text.replace("$$", "$")


def field(name: str, path: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def secret(name: str, holder: str, key: str) -> Json:
    """An environment variable with a value of a Secret."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": holder, "key": key}}}


def http_probe(path: str, port: int, failures: int = 3, *, tls: bool = False) -> Json:
    """A probe by HTTP status code. With TLS, kubelets take any certificate."""
    asked = {"path": path, "port": port, **({"scheme": "HTTPS"} if tls else {})}
    return {"httpGet": asked, "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": failures}


def metrics_port(port: int) -> list[Json]:
    """The port of `/metrics`, under the one name by which scrapers find all servers."""
    return [{"name": names.METRICS_PORT_NAME, "containerPort": port, "protocol": "TCP"}]


def config_map(owner: Resource, component: str, name: str, data: Mapping[str, str]) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(owner, component, name), "data": dict(data)}


def headless_service(owner: Resource, component: str, name: str, ports: Mapping[str, int]) -> Json:
    """A Service that gives each pod a host name even before it is ready: members must find each other to become ready."""
    service = client_service(owner, component, name, ports)
    return {**service, "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, **service["spec"]}}


def client_service(owner: Resource, component: str, name: str, ports: Mapping[str, int]) -> Json:
    """A Service of the ready pods."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(owner, component, name),
        "spec": {
            "selector": names.selector(component, owner.metadata.name),
            "ports": [{"name": key, "port": port, "targetPort": port} for key, port in ports.items()],
        },
    }


def disruption_budget(owner: Resource, component: str, name: str, least: int | None = None, most_away: int = 1) -> Json:
    """`most_away` voluntary disruptions at a time. `least`: how many pods stay, instead; needed if each has a StatefulSet of its own.
    Kubernetes counts what may be unavailable by the StatefulSets of existing pods. So a pod that may not be made again would not count.
    """
    # null takes away what somebody set instead: both together are refused
    allowed = {"maxUnavailable": most_away if least is None else None, "minAvailable": least}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(owner, component, name),
        "spec": {**allowed, "selector": {"matchLabels": names.selector(component, owner.metadata.name)}},
    }
