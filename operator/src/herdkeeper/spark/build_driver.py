"""Builds the Job whose pod is the Spark driver, from a job's description."""

from __future__ import annotations

import json

from herdkeeper.planning import pods as pod
from herdkeeper.planning.identities import python_identity
from herdkeeper.planning.network_policies import build_job_policy
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json
from herdkeeper.shared.quantity import MIB, bytes_of
from herdkeeper.spark import encryption_keys
from herdkeeper.spark.build_executors import executor_access, executor_pod
from herdkeeper.spark.job_run import DESTINATION, JobFiles, JobRun, access_to_files, labels_of
from herdkeeper.spark.object_store import service_account
from herdkeeper.spark.sources import ArchiveSource, Login

ARCHIVE = "/archive"
"""Mount path of the claim with the log's archive, if it is another one."""

_TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a folder, not a password
"""Where clients of the API server look for a token, Spark's among them."""


def job_and_access(run: JobRun, driver_role: str) -> tuple[Json, ...]:
    """Without executors the driver is alone, and listens only on loopback."""
    spark = (
        (*executor_access(run, driver_role), build_job_policy(run.owner, run.component, run.name)) if run.spec.executors.instances else ()
    )
    return (*spark, driver_job(run, spark_arguments(run)))


def spark_arguments(run: JobRun) -> tuple[str, ...]:
    spec, executors = run.spec, run.spec.executors
    # Half of the limit. Python workers, the reader's buffers and Spark's overhead take the other half.
    heap = f"{bytes_of(spec.resources.memory) // MIB // 2}m"
    if executors.instances == 0:
        return ("--master", f"local[{spec.local_threads}]", "--driver-memory", heap)
    return (
        *("--master", "k8s://https://kubernetes.default.svc"),
        *("--driver-memory", heap),
        *("--executors", str(executors.instances)),
        *("--executor-cores", str(executors.cores)),
        *("--executor-cpu-request", executors.cpu),
        *("--executor-memory", f"{bytes_of(executors.memory) // MIB}m"),
        *("--executor-image", run.image),
        *(("--executor-volume", ",".join(f"{claim}:{path}" for claim, path in _claims(run.files))) if _claims(run.files) else ()),
        *("--image-pull-policy", "IfNotPresent"),
        *("--executor-pod", json.dumps(executor_pod(run), sort_keys=True)),
    )


def _claims(files: JobFiles) -> tuple[tuple[str, str], ...]:
    """Returns each claim with its mount path."""
    archive = files.archive.destination.claim_name if files.archive is not None else None
    other = archive if archive != files.claim else None
    return tuple((claim, path) for claim, path in ((files.claim, DESTINATION), (other, ARCHIVE)) if claim)


def _volumes(files: JobFiles) -> tuple[list[Json], list[Json]]:
    """Returns the volumes of a job's pod, and their mounts."""
    called = {DESTINATION: "destination", ARCHIVE: "archive"}
    read = {DESTINATION: files.reads_only, ARCHIVE: True}
    volumes = [{"name": called[path], "persistentVolumeClaim": {"claimName": claim}} for claim, path in _claims(files)]
    mounts = [{"name": called[path], "mountPath": path, **({"readOnly": True} if read[path] else {})} for _, path in _claims(files)]
    return [*volumes, *encryption_keys.volumes(files.keys)], [*mounts, *encryption_keys.mounts(files.keys)]


def _archiver_affinity(archive: ArchiveSource | None) -> Json:
    """A volume that only one node can mount is mounted on the archiver's node."""
    if archive is None or archive.tablespace is None or archive.destination.claim_name is None:
        return {}
    selector = {"matchLabels": names.selector(names.ARCHIVE_COMPONENT, archive.tablespace)}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}}}


def driver_job(run: JobRun, spark_arguments: tuple[str, ...]) -> Json:
    # The run keeps its id over retries, so that a retry of a finished run finds its result.
    run_id = run.owner.metadata.uid or run.owner.metadata.name
    volumes, mounts = _volumes(run.files)
    identity, account = python_identity(run.identity), service_account(*run.files.places)
    drives = run.spec.executors.instances > 0
    if drives and account is not None:
        # A pod has one account, here the one that the cloud knows. With this token the API server accepts it as the driver of executors.
        volumes = [*volumes, {"name": "token", "secret": {"secretName": run.name, "defaultMode": 0o440}}]
        mounts = [*mounts, {"name": "token", "mountPath": _TOKEN_FOLDER, "readOnly": True}]
    container = {
        "name": "driver",
        "image": run.image,
        "args": [pod.literal(each) for each in ("python3", "-m", *run.command, "--run-id", run_id, *spark_arguments)],
        "env": [
            pod.field("POD_IP", "status.podIP"),
            pod.field("POD_NAME", "metadata.name"),
            pod.field("POD_NAMESPACE", "metadata.namespace"),
            *([{"name": "SERVICE_ACCOUNT", "value": run.name}] if drives else []),
            *(_login(run.login) if run.login is not None else ()),
            *((_node_token(run.node_token),) if run.node_token is not None else ()),
            *((_node_authorities(run.node_authorities),) if run.node_authorities is not None else ()),
            *access_to_files(run.files),
            *identity.variables,
        ],
        "resources": pod.compute(run.spec.resources),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [*mounts, *identity.mounts],
    }
    spec: Json = {
        **pod.pod_spec(run.owner, container, [*volumes, *identity.volumes], 30, pod.UNLIMITED_TEMPORARY_VOLUME),
        **pod.admitted(run.spec.pods),
        **_archiver_affinity(run.files.archive),
        "restartPolicy": "Never",
        **({"serviceAccountName": account} if account is not None else {}),
    }
    if drives and account is None:
        spec |= {"serviceAccountName": run.name, "automountServiceAccountToken": True}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": pod.metadata(run.owner, run.component, run.name),
        "spec": {
            "backoffLimit": 2,
            # Two drivers at once would be two writers, so the next one starts after the last one has ended.
            "podReplacementPolicy": "Failed",
            "activeDeadlineSeconds": run.spec.deadline_seconds,
            "podFailurePolicy": {
                "rules": [
                    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                    {"action": "FailJob", "onExitCodes": {"containerName": "driver", "operator": "In", "values": [2, 42]}},
                ]
            },
            "template": {
                "metadata": pod.template_metadata(labels_of(run, run.component), {}, run.spec.pods),
                "spec": spec,
            },
        },
    }


def _login(login: Login) -> tuple[Json, ...]:
    """Returns what herdkeeper_jobs.restore.cli reads."""
    return (
        pod.secret("HERDDB_USERNAME", login.secret, names.USERNAME_KEY),
        pod.secret("HERDDB_PASSWORD", login.secret, names.PASSWORD_KEY),
        *((_node_authorities(login.tls_secret),) if login.tls_secret else ()),
    )


def _node_authorities(secret: str) -> Json:
    """Returns the variable with the certificates that verify SQL nodes."""
    return pod.secret(names.NODE_AUTHORITIES_VARIABLE, secret, names.AUTHORITIES_KEY)


def _node_token(secret: str) -> Json:
    """Returns the token that a checkpoint's driver sends to a node. Old nodes require none, so a Secret without one blocks nothing."""
    reference = {"name": secret, "key": names.TOKEN_KEY, "optional": True}
    return {"name": "HERDDB_TOKEN", "valueFrom": {"secretKeyRef": reference}}
