"""Builds what executors need: their pods' template, and the driver's right to create these pods.

The chart's admission policy restricts a driver to pods like these (charts/herdkeeper/templates).
"""

from __future__ import annotations

from herdkeeper.api.resource import GROUP
from herdkeeper.planning import pods as pod
from herdkeeper.planning.identities import python_identity
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json
from herdkeeper.spark import encryption_keys
from herdkeeper.spark.job_run import JobRun, access_to_files, labels_of
from herdkeeper.spark.object_store import service_account

_RBAC = "rbac.authorization.k8s.io"


def executor_pod(run: JobRun) -> Json:
    """Returns the template of executor pods, as restricted as the driver's. Spark adds image, command, CPU, memory, claims, and a volume at
    /tmp (SPARK_LOCAL_DIRS). It lacks the labels that select a Job's own pods.
    """
    identity = python_identity(run.identity)
    container = {
        "name": "executor",
        "securityContext": pod.CONTAINER_SECURITY,
        **({"resources": {"limits": dict(limits)}} if (limits := run.spec.executors.limits) else {}),
        **({"env": opens} if (opens := [*access_to_files(run.files), *identity.variables]) else {}),
        **({"volumeMounts": mounts} if (mounts := [*encryption_keys.mounts(run.files.keys), *identity.mounts]) else {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": pod.template_metadata(labels_of(run, names.EXECUTOR_COMPONENT), {}, run.spec.pods),
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": pod.pod_security(run.owner),
            "containers": [container],
            **({"volumes": volumes} if (volumes := [*encryption_keys.volumes(run.files.keys), *identity.volumes]) else {}),
            **({"serviceAccountName": account} if (account := service_account(*run.files.places)) is not None else {}),
            **pod.admitted(run.spec.pods),
        },
    }


def executor_access(run: JobRun, driver_role: str) -> tuple[Json, ...]:
    """Returns what gives a driver the rights of `driver_role`, the chart's ClusterRole, with which it creates, watches and deletes its
    executors. If its pod runs as another ServiceAccount, also a Secret in which the API server puts a token of this one.
    """
    meta, account = pod.metadata(run.owner, run.component, run.name), service_account(*run.files.places)
    # The driver's pod requests the token; no other pod of this account has it.
    identity = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta, "automountServiceAccountToken": False}
    # A binding never changes its role, so one to another role has another name.
    bound = _binding(run, {**meta, "name": f"{run.name}-{driver_role}"}, {"kind": "ClusterRole", "name": driver_role})
    of_account = {**meta, "annotations": {**(meta.get("annotations") or {}), "kubernetes.io/service-account.name": run.name}}
    token = {"apiVersion": "v1", "kind": "Secret", "metadata": of_account, "type": "kubernetes.io/service-account-token"}
    return (identity, bound, *_marks(run, meta, account), *((token,) if account is not None else ()))


def _marks(run: JobRun, meta: Json, account: str | None) -> tuple[Json, ...]:
    """Returns the Role by which the chart's admission policy knows which account and Secrets executors may have. It gives no right."""
    marked = {"run": [account] if account is not None else [], "mount": _secrets(executor_pod(run)["spec"])}
    rules = [
        {"apiGroups": [GROUP], "resources": ["executors"], "verbs": [verb], "resourceNames": only} for verb, only in marked.items() if only
    ]
    role = {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": meta, "rules": rules}
    return (role, _binding(run, meta, {"kind": "Role", "name": run.name})) if rules else ()


def _secrets(spec: Json) -> list[str]:
    (container,) = spec["containers"]
    read = {entry["valueFrom"]["secretKeyRef"]["name"] for entry in container.get("env", ()) if "valueFrom" in entry}
    return sorted(read | {volume["secret"]["secretName"] for volume in spec.get("volumes", ()) if "secret" in volume})


def _binding(run: JobRun, meta: Json, role: Json) -> Json:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": _RBAC, **role},
        "subjects": [{"kind": "ServiceAccount", "name": run.name, "namespace": run.owner.metadata.namespace}],
    }
