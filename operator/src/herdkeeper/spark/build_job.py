"""Builds the Job of a Checkpoint, a ReplicationAudit or a Tablespace's bootstrap, whose pod is the Spark driver, and what executor pods
need. The Job that removes a Checkpoint's files is similar, without Spark.

Arguments and exit codes are those of the cli modules in herdkeeper_jobs.{checkpoint,audit,restore} (and its removal_cli): 2 configuration,
42 invariant.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from herdkeeper.api import Checkpoint, ReplicationAudit, ScheduledCheckpoint, Tablespace
from herdkeeper.api.checkpoint import Target
from herdkeeper.api.job import Destination, Executors, ObjectStore, SparkJob
from herdkeeper.api.replication_audit import LedgerFilter, RepairMode
from herdkeeper.api.resource import GROUP, Compute
from herdkeeper.api.tablespace import Bootstrap
from herdkeeper.planning import pods as pod
from herdkeeper.planning.identities import python_identity
from herdkeeper.planning.network_policies import build_job_policy
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.objects import Json
from herdkeeper.shared.quantity import MIB, bytes_of
from herdkeeper.shared.time import text_of
from herdkeeper.shared.timetable import duration_of
from herdkeeper.spark import build_encryption_keys as encryption_keys
from herdkeeper.spark import build_throwaway_server as throwaway_server
from herdkeeper.spark.object_store import identity_labels, keys_of, service_account

READ_UNTIL = "--read-until"
"""The program's argument with the closing time of the window."""

DESTINATION = "/checkpoints"
"""Mount path of the destination's claim."""
ARCHIVE = "/archive"
"""Mount path of the claim with the log's archive, if it is another one."""
REMOVAL_RESOURCES = Compute(cpu="100m", memory="512Mi")
"""For a Job that lists and deletes files: Python with the modules for a checkpoint's layout."""

_TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a folder, not a password
"""Where clients of the API server look for a token, Spark's among them."""

DRILL_KEPT_SECONDS = 86400
"""How long the logs of a finished drill stay readable."""


@dataclass(frozen=True)
class ArchiveSource:
    """The archive of a log: the Tablespace of its archiver, or None if unknown, and the place."""

    tablespace: str | None
    destination: Destination


@dataclass(frozen=True)
class FollowerSource:
    """A follower whose tables may be the base of a Checkpoint, for lack of anything else: host:port of its HTTP endpoint, and of a follower
    that verifies it. None if the first one matched the log before.
    """

    follower: str
    witness: str | None


@dataclass(frozen=True)
class CheckpointSource:
    """What a Checkpoint's references resolve to.

    `leader` and `follower` are host:port of their HTTP endpoints, or None; `secret` is the Secret with their token; `archive` is the log's
    archive, or None; `begins_with` is a follower fit as a base, or None; `identity` is the Secret with the certificate that servers
    require, or None. `with_tls` are the addresses that speak TLS, and `authorities` is the Secret with the certificates that verify
    them.
    """

    zookeeper_address: str
    ledgers_root: str
    herd_root: str
    tablespace: str
    leader: str | None
    follower: str | None
    secret: str
    archive: ArchiveSource | None = None
    begins_with: FollowerSource | None = None
    identity: str | None = None
    with_tls: frozenset[str] = frozenset()
    authorities: str | None = None


@dataclass(frozen=True)
class AuditSource:
    """What a ReplicationAudit's reference resolves to: the cluster, its bookies' racks by id, and how many racks each entry needs.
    `identity` as in CheckpointSource.
    """

    zookeeper_address: str
    ledgers_root: str
    rack_of: Mapping[str, str] = field(default_factory=dict)
    min_racks: int = 1
    identity: str | None = None


@dataclass(frozen=True)
class OpenWindow:
    """The current hours in which an audit may read."""

    now: datetime.datetime
    closes: datetime.datetime

    @property
    def seconds_left(self) -> int:
        """Whole seconds until it closes, rounded up."""
        return math.ceil((self.closes - self.now).total_seconds())


@dataclass(frozen=True)
class Login:
    """The Secret with the database's user and password, and the one with certificates to verify its nodes, None without TLS."""

    secret: str
    tls_secret: str | None = None


@dataclass(frozen=True)
class RestoreSource:
    """What a Tablespace's bootstrap resolves to.

    `path` is that of a manifest at the place `files`, or with `archive` perhaps of a tablespace's folder there. `archive` is the old log's
    archive, for a moment; `identity` as in CheckpointSource.
    """

    zookeeper_address: str
    herd_root: str
    files: Destination
    path: str
    login: Login
    archive: ArchiveSource | None = None
    identity: str | None = None


@dataclass(frozen=True)
class DrillSource:
    """What a drill restores, and where: the checkpoint's destination, the manifest's path there, the database's image, and
    the Job's name.
    """

    files: Destination
    manifest: str
    herddb_image: str
    job: str


@dataclass(frozen=True)
class _Files:
    """What a job reads and writes: at `place`, None where that is nothing. `reads_only`: it writes nothing to its claim; `archive`: where
    the log that it reads is archived; `keys`: the Secrets with keys of its files."""

    place: Destination | None
    reads_only: bool = False
    archive: ArchiveSource | None = None
    keys: tuple[str, ...] = ()

    @staticmethod
    def at(place: Destination, archive: ArchiveSource | None = None, *, reads_only: bool = False) -> _Files:
        """Those at a place, and at an archive, which are opened with the keys of both."""
        return _Files(place, reads_only, archive, encryption_keys.secrets_of(place, archive.destination if archive else None))

    @property
    def claim(self) -> str | None:
        return self.place.claim_name if self.place else None

    @property
    def places(self) -> tuple[Destination | None, Destination | None]:
        return (self.place, self.archive.destination if self.archive else None)


@dataclass(frozen=True)
class _Run:
    """A job as all kinds describe it. `login` is for the database, if used; `called`: the Job's name, if its owner has several;
    `node_token`: the Secret with the nodes' token, if used; `node_authorities`: the Secret that verifies nodes, if they speak TLS;
    `identity`: the Secret with its certificate, if servers require one.
    """

    owner: Checkpoint | ReplicationAudit | ScheduledCheckpoint | Tablespace
    component: str
    default_image: str
    command: tuple[str, ...]
    spec: SparkJob
    files: _Files
    login: Login | None = None
    called: str | None = None
    node_token: str | None = None
    node_authorities: str | None = None
    identity: str | None = None

    @property
    def image(self) -> str:
        return self.spec.image or self.default_image

    @property
    def name(self) -> str:
        return names.job_name(self.owner.key, self.component) if self.called is None else self.called


def build_checkpoint(checkpoint: Checkpoint, source: CheckpointSource, default_image: str) -> tuple[Json, ...]:
    """Returns the Checkpoint's Job, after its rights if it has executors. Raises ValueError if a follower is required and none is known."""
    spec = checkpoint.spec
    if spec.verify == "Follower" and source.follower is None:
        raise ValueError("spec.verify is Follower: no follower is known; wait for one, or create a Checkpoint with verify: Reread")
    archived = _archive_arguments(source.archive, spec.destination)
    verify = ("--verify-against", source.follower) if spec.verify == "Follower" and source.follower else ()
    rate, full_every = spec.bytes_per_second_per_bookie, str(int(duration_of(spec.full_every).total_seconds()))
    # A follower can be held only at the present, and a request for the whole log accepts nothing else.
    begins_with = source.begins_with if spec.target is None and spec.mode != "Full" else None
    leader = ("--leader-http", source.leader) if source.leader and spec.target is None else ()
    base = _begins_with(begins_with)
    # An image that does not know this argument ends before it sends the token in plain text.
    with_tls = [address for address in dict.fromkeys((*leader, *verify, *base)) if address in source.with_tls]
    command = (
        "herdkeeper_jobs.checkpoint.cli",
        *("--zookeeper", source.zookeeper_address),
        *("--ledgers-root", source.ledgers_root),
        *("--herd-root", source.herd_root),
        *("--tablespace", source.tablespace),
        *("--to", _moment(spec.target)),
        *(("--mode", spec.mode) if spec.mode != "Auto" else ("--full-every-seconds", full_every)),
        *(("--bytes-per-second-per-bookie", str(bytes_of(rate))) if rate else ()),
        *("--destination", root_of(spec.destination)),
        *encryption_keys.encrypts(spec.destination),
        *leader,
        *verify,
        *base,
        *(("--nodes-with-tls", ",".join(with_tls)) if with_tls else ()),
    )
    return _objects(
        _Run(
            checkpoint,
            names.CHECKPOINT_COMPONENT,
            default_image,
            (*command, *archived),
            spec.job,
            _Files.at(spec.destination, source.archive),
            node_token=source.secret if verify or begins_with is not None else None,
            node_authorities=source.authorities if with_tls else None,
            identity=source.identity,
        )
    )


def _begins_with(source: FollowerSource | None) -> tuple[str, ...]:
    if source is None:
        return ()
    return ("--base-follower", source.follower, *(("--base-witness", source.witness) if source.witness is not None else ()))


def root_of(destination: Destination) -> str:
    """What paths are relative to, as the programs' arguments name it."""
    return DESTINATION if destination.object_store is None else destination.object_store.uri


def _archive_arguments(archive: ArchiveSource | None, destination: Destination) -> tuple[str, ...]:
    """Nothing if the archive is at the destination itself, with the same Secrets. All keys are mounted in any case."""
    if archive is None:
        return ()
    claim, store = archive.destination.claim_name, archive.destination.object_store
    if (claim, store) == (destination.claim_name, destination.object_store):
        return ()
    return ("--archive", ARCHIVE if store is None else store.uri)


def _moment(target: Target | None) -> str:
    """Returns the program's `--to`. Raises ValueError for an empty target, which the API server refuses."""
    if target is None:
        return "now"
    if target.timestamp is not None:
        return target.timestamp
    if target.lsn is not None:
        return f"{target.lsn.ledger_id},{target.lsn.entry_id}"
    raise ValueError("spec.target has no moment: set one of spec.target.lsn and spec.target.timestamp")


def build_removal(checkpoint: Checkpoint, manifest: str | None, default_image: str, *, only_own: bool = False) -> Json:
    """Returns the Job that removes a Checkpoint's files. `manifest` is its path at the destination, None if the run reported none.
    `only_own`: a manifest that another run made stays.
    """
    command = (
        "herdkeeper_jobs.checkpoint.removal_cli",
        *("--destination", root_of(checkpoint.spec.destination)),
        *(("--manifest", manifest) if manifest else ()),
        *(("--only-own",) if only_own else ()),
    )
    spec = checkpoint.spec.job.model_copy(update={"resources": REMOVAL_RESOURCES, "executors": Executors()})
    destination = checkpoint.spec.destination
    files = _Files(destination)  # no rows are read: no key is needed
    return _job(_Run(checkpoint, names.REMOVAL_COMPONENT, default_image, command, spec, files), ())


def build_audit(audit: ReplicationAudit, source: AuditSource, default_image: str, window: OpenWindow | None = None) -> tuple[Json, ...]:
    """Returns the ReplicationAudit's Job, after its rights if it has executors. Its deadline counts from the end of the window."""
    spec = audit.spec
    rate = spec.bytes_per_second_per_bookie
    command = (
        "herdkeeper_jobs.audit.cli",
        *("--zookeeper", source.zookeeper_address),
        *("--ledgers-root", source.ledgers_root),
        *(("--depth", "light") if spec.depth == "Light" else ()),
        *_placement_arguments(source),
        *_filter_arguments(audit),
        *(("--bytes-per-second-per-bookie", str(bytes_of(rate))) if rate else ()),
        *_repair_arguments(spec.repair),
        *(("--output", DESTINATION) if spec.destination else ()),
        *((READ_UNTIL, text_of(window.closes)) if window else ()),
    )
    files = _Files(Destination(persistent_volume_claim=spec.destination.persistent_volume_claim) if spec.destination else None)
    seconds = spec.job.deadline_seconds + (window.seconds_left if window else 0)
    job = spec.job.model_copy(update={"deadline_seconds": seconds})
    return _objects(_Run(audit, names.AUDIT_COMPONENT, default_image, command, job, files, identity=source.identity))


def _filter_arguments(audit: ReplicationAudit) -> tuple[str, ...]:
    chosen = audit.spec.filter or LedgerFilter()
    ids = ",".join((*map(str, audit.spec.ledgers), *(f"{each.first}-{each.last}" for each in chosen.ledger_ranges)))
    roots = ((names.herd_root(ObjectKey(audit.metadata.namespace, each.herd_db_ref.name)), each.name) for each in chosen.tablespaces)
    return (
        *(("--ledgers", ids) if ids else ()),
        *(argument for root, name in roots for argument in ("--tablespace", root, name)),
        *(("--states", ",".join(chosen.states)) if chosen.states else ()),
        *(("--bookies", ",".join(chosen.bookies)) if chosen.bookies else ()),
    )


def _placement_arguments(source: AuditSource) -> tuple[str, ...]:
    if not source.rack_of:
        return ()
    racks = ",".join(f"{bookie_id}={rack}" for bookie_id, rack in sorted(source.rack_of.items()))
    return ("--racks", racks, "--min-racks", str(source.min_racks))


def _repair_arguments(mode: RepairMode) -> tuple[str, ...]:
    match mode:
        case "Report":
            return ()
        case "DryRun":
            return ("--repair", "dry-run")
        case "Repair":
            return ("--repair", "repair")
        case _:
            assert_never(mode)


def build_restore(tablespace: Tablespace, source: RestoreSource, default_image: str) -> tuple[Json, ...]:
    """Returns the Job that fills a Tablespace, after its rights if it has executors. Raises ValueError without a bootstrap."""
    bootstrap = tablespace.spec.bootstrap
    if bootstrap is None:
        raise ValueError("spec.bootstrap is absent: there is nothing to restore")
    command = (
        "herdkeeper_jobs.restore.cli",
        *("--zookeeper", source.zookeeper_address),
        *("--herd-root", source.herd_root),
        *("--tablespace", tablespace.sql_name),
        *_restored_arguments(bootstrap, source),
    )
    files = _Files.at(source.files, source.archive, reads_only=bootstrap.target is None)
    run = _Run(tablespace, names.RESTORE_COMPONENT, default_image, command, bootstrap.job, files, source.login, identity=source.identity)
    return _objects(run)


def _restored_arguments(bootstrap: Bootstrap, source: RestoreSource) -> tuple[str, ...]:
    named = "--folder" if bootstrap.archive is not None and bootstrap.archive.folder is not None else "--manifest"
    which = (named, f"{root_of(source.files)}/{source.path}")
    if bootstrap.target is None:
        return which
    encrypts = encryption_keys.encrypts(source.files)
    return (*which, "--to", bootstrap.target.text, *_archive_arguments(source.archive, source.files), *encrypts)


def build_drill(schedule: ScheduledCheckpoint, source: DrillSource, default_image: str) -> Json:
    """Returns the Job that restores a checkpoint into a server in its own pod. Raises ValueError without a drill."""
    drill = schedule.spec.drill
    if drill is None:
        raise ValueError("spec.drill is absent: there is nothing to restore")
    command = (
        "herdkeeper_jobs.restore.cli",
        *("--server", throwaway_server.ADDRESS),
        *("--tablespace", throwaway_server.TABLESPACE),
        *("--manifest", f"{root_of(source.files)}/{source.manifest}"),
    )
    run = _Run(
        schedule,
        names.DRILL_COMPONENT,
        default_image,
        command,
        SparkJob.model_validate(drill.job.model_dump()),
        _Files.at(source.files, reads_only=True),
        called=source.job,
    )
    job = _job(run, _spark_arguments(run))
    template = job["spec"]["template"]
    (driver,) = template["spec"]["containers"]
    with_server = {
        **template["spec"],
        "initContainers": [throwaway_server.server_container(drill.server, source.herddb_image)],
        "containers": [{**driver, "env": [*driver["env"], *throwaway_server.server_login()]}],
        "volumes": [*template["spec"]["volumes"], throwaway_server.server_volume(drill.server.storage)],
    }
    described = {"ttlSecondsAfterFinished": DRILL_KEPT_SECONDS, "template": {**template, "spec": with_server}}
    return {**job, "spec": {**job["spec"], **described}}


def _objects(run: _Run) -> tuple[Json, ...]:
    """Without executors the driver is alone, and listens only on loopback."""
    spark = (*_access(run), build_job_policy(run.owner, run.component, run.name)) if run.spec.executors.instances else ()
    return (*spark, _job(run, _spark_arguments(run)))


def _spark_arguments(run: _Run) -> tuple[str, ...]:
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
        *("--executor-pod", json.dumps(_executor_pod(run), sort_keys=True)),
    )


def _claims(files: _Files) -> tuple[tuple[str, str], ...]:
    """Returns each claim with its mount path."""
    archive = files.archive.destination.claim_name if files.archive is not None else None
    other = archive if archive != files.claim else None
    return tuple((claim, path) for claim, path in ((files.claim, DESTINATION), (other, ARCHIVE)) if claim)


def _volumes(files: _Files) -> tuple[list[Json], list[Json]]:
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


def _job(run: _Run, spark_arguments: tuple[str, ...]) -> Json:
    # The run keeps its id over retries, so that a retry of a finished run finds its result.
    run_id = run.owner.metadata.uid or run.owner.metadata.name
    volumes, mounts = _volumes(run.files)
    identity, account = python_identity(run.identity), service_account(*run.files.places)
    drives = run.spec.executors.instances > 0
    if drives and account is not None:
        # A pod is one account, here that which the cloud knows: by this token it is to the API server what drives executors.
        volumes = [*volumes, {"name": "token", "secret": {"secretName": run.name, "defaultMode": 0o440}}]
        mounts = [*mounts, {"name": "token", "mountPath": _TOKEN_FOLDER, "readOnly": True}]
    container = {
        "name": "driver",
        "image": run.image,
        "args": ["python3", "-m", *run.command, "--run-id", run_id, *spark_arguments],
        "env": [
            pod.field("POD_IP", "status.podIP"),
            pod.field("POD_NAME", "metadata.name"),
            pod.field("POD_NAMESPACE", "metadata.namespace"),
            *([{"name": "SERVICE_ACCOUNT", "value": run.name}] if drives else []),
            *(_login(run.login) if run.login is not None else ()),
            *((_node_token(run.node_token),) if run.node_token is not None else ()),
            *((_node_authorities(run.node_authorities),) if run.node_authorities is not None else ()),
            *_access_to_files(run.files),
            *identity.variables,
        ],
        "resources": pod.compute(run.spec.resources),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [*mounts, *identity.mounts],
    }
    spec: Json = {
        **pod.pod_spec(container, [*volumes, *identity.volumes], 30, pod.UNLIMITED_TEMPORARY_VOLUME),
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
                "metadata": pod.template_metadata(_labels(run, run.component), {}, run.spec.pods),
                "spec": spec,
            },
        },
    }


def _labels(run: _Run, component: str) -> dict[str, str]:
    return {**identity_labels(*run.files.places), **names.labels(component, run.owner.KIND, run.owner.metadata.name)}


def _executor_pod(run: _Run) -> Json:
    """Returns the template of executor pods, as restricted as the driver's. Spark adds image, command, CPU, memory, claims, and a volume at
    /tmp (SPARK_LOCAL_DIRS). It lacks the labels that select a Job's own pods.
    """
    identity = python_identity(run.identity)
    container = {
        "name": "executor",
        "securityContext": pod.CONTAINER_SECURITY,
        **({"env": opens} if (opens := [*_access_to_files(run.files), *identity.variables]) else {}),
        **({"volumeMounts": mounts} if (mounts := [*encryption_keys.mounts(run.files.keys), *identity.mounts]) else {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": pod.template_metadata(_labels(run, names.EXECUTOR_COMPONENT), {}, run.spec.pods),
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": pod.POD_SECURITY,
            "containers": [container],
            **({"volumes": volumes} if (volumes := [*encryption_keys.volumes(run.files.keys), *identity.volumes]) else {}),
            **({"serviceAccountName": account} if (account := service_account(*run.files.places)) is not None else {}),
            **pod.admitted(run.spec.pods),
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
    """Returns the token that herdkeeper_jobs.checkpoint.cli sends to a node. Old nodes require none, so a Secret without a token blocks
    nothing.
    """
    reference = {"name": secret, "key": names.TOKEN_KEY, "optional": True}
    return {"name": "HERDDB_TOKEN", "valueFrom": {"secretKeyRef": reference}}


def _access_to_files(files: _Files) -> tuple[Json, ...]:
    """Returns the variables for access to files, in driver and executors."""
    return (*_store_variables(files), *encryption_keys.variables(files.keys))


def _store_variables(files: _Files) -> tuple[Json, ...]:
    """Returns the variables for the destination's store, and separate ones for the archive's, which may be another store."""
    store, archive = (place.object_store if place is not None else None for place in files.places)
    return (
        *(store_access(store) if store is not None else ()),
        *(store_access(archive, names.ARCHIVE_VARIABLES) if archive is not None and archive != store else ()),
    )


def store_access(store: ObjectStore, prefix: str = names.DESTINATION_VARIABLES) -> tuple[Json, ...]:
    """What herdkeeper_jobs.storage reads, in the driver and in executors; `prefix` goes before the variables' names."""
    plain = {
        names.STORE_ENDPOINTS[store.scheme]: store.endpoint,
        names.REGION_VARIABLE: store.region if store.scheme == "s3" else None,
        names.STORAGE_ACCOUNT_VARIABLE: store.storage_account,
    }
    held, authorities = store.credentials_secret_ref, f"{prefix}{names.STORE_AUTHORITIES_VARIABLE}"
    return (
        *((pod.secret(f"{prefix}{key}", held.name, key) for key in keys_of(store)) if held is not None else ()),
        *({"name": f"{prefix}{name}", "value": value} for name, value in plain.items() if value is not None),
        *((pod.secret(authorities, store.ca_secret_ref.name, names.AUTHORITIES_KEY),) if store.ca_secret_ref else ()),
    )


def _access(run: _Run) -> tuple[Json, ...]:
    """What a driver needs to start, watch and remove its executors, and nothing more. Where its pod runs as another ServiceAccount, a
    Secret in which the API server puts a token of this one."""
    meta, account = pod.metadata(run.owner, run.component, run.name), service_account(*run.files.places)
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "create", "delete", "deletecollection"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create", "delete", "deletecollection"]},
        # the chart's admission policy identifies by this label who may create and delete only executors
        {"apiGroups": [GROUP], "resources": ["executors"], "verbs": ["drive"]},
        # and by this one as whom they may run, beside the default account
        *([{"apiGroups": [GROUP], "resources": ["executors"], "verbs": ["run"], "resourceNames": [account]}] if account else []),
    ]
    group = "rbac.authorization.k8s.io"
    of_account = {**meta, "annotations": {**(meta.get("annotations") or {}), "kubernetes.io/service-account.name": run.name}}
    token = {"apiVersion": "v1", "kind": "Secret", "metadata": of_account, "type": "kubernetes.io/service-account-token"}
    return (
        # the driver's pod requests the token; no other pod of this account has it
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta, "automountServiceAccountToken": False},
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": meta, "rules": rules},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": run.name},
            "subjects": [{"kind": "ServiceAccount", "name": run.name, "namespace": run.owner.metadata.namespace}],
        },
        *((token,) if account is not None else ()),
    )
