"""Builds the Deployment of the one pod that archives a Tablespace's log. The arguments are those of herdkeeper_jobs.archive.cli."""

from __future__ import annotations

from herdkeeper.api import Tablespace
from herdkeeper.herddb.state.log_store import LogStore
from herdkeeper.planning import pods as pod
from herdkeeper.planning.identities import python_identity
from herdkeeper.shared import names
from herdkeeper.shared.names import TablespaceNames
from herdkeeper.shared.objects import Json
from herdkeeper.shared.quantity import bytes_of
from herdkeeper.spark import encryption_keys
from herdkeeper.spark.job_run import store_access
from herdkeeper.spark.object_store import StoreSecrets, identity_labels, service_account

DESTINATION = "/archive"
"""Mount path of the destination's claim."""


def build_archiver(tablespace: Tablespace, log: LogStore, herd_root: str, default_image: str, secrets: StoreSecrets | None = None) -> Json:
    """Returns the Deployment. `secrets` open the store: a process keeps the keys that it started with, so changed ones restart it. Raises
    ValueError for a Tablespace without an archive.
    """
    archive = tablespace.spec.log.archive
    if archive is None:
        raise ValueError("spec.log.archive is absent: there is nothing to archive")
    claim, store, rate = archive.destination.claim_name, archive.destination.object_store, archive.bytes_per_second_per_bookie
    key = tablespace.key
    labels = names.labels(names.ARCHIVE_COMPONENT, tablespace.KIND, key.name)
    keys, identity = encryption_keys.secrets_of(archive.destination), python_identity(log.readers_secret)
    account = service_account(archive.destination)
    environment = [*(store_access(store) if store else ()), *encryption_keys.variables(keys), *identity.variables]
    arguments = (
        *("python3", "-m", "herdkeeper_jobs.archive.cli"),
        *("--zookeeper", log.zookeeper_address),
        *("--ledgers-root", log.ledgers_root),
        *("--herd-root", herd_root),
        *("--tablespace", tablespace.sql_name),
        *("--destination", DESTINATION if store is None else store.uri),
        *("--place", archive.destination.place),
        *encryption_keys.encrypts(archive.destination),
        *("--run-id", tablespace.metadata.uid or key.name),
        *("--every", str(archive.every_seconds)),
        *(("--bytes-per-second-per-bookie", str(bytes_of(rate))) if rate else ()),
    )
    container = {
        "name": "archiver",
        "image": archive.image or default_image,
        "args": [pod.literal(each) for each in arguments],
        "resources": pod.compute(archive.resources),
        "volumeMounts": [
            *([{"name": "destination", "mountPath": DESTINATION}] if claim else []),
            *encryption_keys.mounts(keys),
            *identity.mounts,
        ],
        **({"env": environment} if environment else {}),
    }
    destination = [{"name": "destination", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    volumes = [*destination, *encryption_keys.volumes(keys), *identity.volumes]
    opened_with = {names.CONFIG_ANNOTATION: pod.config_hash(secrets.values)} if secrets else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": pod.metadata(tablespace, names.ARCHIVE_COMPONENT, TablespaceNames(key).archive),
        "spec": {
            "replicas": 1,
            # Two at once do no harm, but the second only reads what the first writes, and a volume may be mountable only once.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": names.selector(names.ARCHIVE_COMPONENT, key.name)},
            "template": {
                "metadata": pod.template_metadata({**identity_labels(archive.destination), **labels}, opened_with, archive.pods),
                "spec": {
                    **pod.pod_spec(tablespace, container, volumes, 30),
                    **pod.admitted(archive.pods),
                    # Said in any case: the API server keeps the name that was there before when none is said any more.
                    "serviceAccountName": account or "default",
                },
            },
        },
    }
