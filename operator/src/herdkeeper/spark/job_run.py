"""A job as all kinds describe it: its owner, command, settings and files. Its pods get their labels and variables from that."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import Checkpoint, ReplicationAudit, ScheduledCheckpoint, Tablespace
from herdkeeper.api.job import Destination, ObjectStore, SparkJob
from herdkeeper.planning import pods as pod
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json
from herdkeeper.spark import encryption_keys
from herdkeeper.spark.object_store import identity_labels, keys_of
from herdkeeper.spark.sources import ArchiveSource, Login

DESTINATION = "/checkpoints"
"""Mount path of the destination's claim."""


@dataclass(frozen=True)
class JobFiles:
    """The files that a job reads and writes: at `place`, or none. `reads_only`: it only reads its claim. `archive`: the archive of the log
    that it reads. `keys`: the Secrets with keys of its files.
    """

    place: Destination | None
    reads_only: bool = False
    archive: ArchiveSource | None = None
    keys: tuple[str, ...] = ()

    @staticmethod
    def at(place: Destination, archive: ArchiveSource | None = None, *, reads_only: bool = False) -> JobFiles:
        """Returns the files at a place and at an archive, with the keys of both."""
        return JobFiles(place, reads_only, archive, encryption_keys.secrets_of(place, archive.destination if archive else None))

    @property
    def claim(self) -> str | None:
        return self.place.claim_name if self.place else None

    @property
    def places(self) -> tuple[Destination | None, Destination | None]:
        return (self.place, self.archive.destination if self.archive else None)


@dataclass(frozen=True)
class JobRun:
    """A job as all kinds describe it. `login` is for the database, if used; `called`: the Job's name, if its owner has several;
    `node_token`: the Secret with the nodes' token, if used; `node_authorities`: the Secret that verifies nodes, if they speak TLS;
    `identity`: the Secret with its certificate, if servers require one.
    """

    owner: Checkpoint | ReplicationAudit | ScheduledCheckpoint | Tablespace
    component: str
    default_image: str
    command: tuple[str, ...]
    spec: SparkJob
    files: JobFiles
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


def root_of(destination: Destination) -> str:
    """Returns the root of a destination's paths, as the programs' arguments name it."""
    return DESTINATION if destination.object_store is None else destination.object_store.uri


def labels_of(run: JobRun, component: str) -> dict[str, str]:
    return {**identity_labels(*run.files.places), **names.labels(component, run.owner.KIND, run.owner.metadata.name)}


def access_to_files(files: JobFiles) -> tuple[Json, ...]:
    """Returns the variables for access to files, in driver and executors."""
    return (*_store_variables(files), *encryption_keys.variables(files.keys))


def _store_variables(files: JobFiles) -> tuple[Json, ...]:
    """Returns the variables for the destination's store, and separate ones for the archive's, which may be another store."""
    store, archive = (place.object_store if place is not None else None for place in files.places)
    return (
        *(store_access(store) if store is not None else ()),
        *(store_access(archive, names.ARCHIVE_VARIABLES) if archive is not None and archive != store else ()),
    )


def store_access(store: ObjectStore, prefix: str = names.DESTINATION_VARIABLES) -> tuple[Json, ...]:
    """Returns the variables that herdkeeper_jobs.storage reads, in driver and executors. Their names begin with `prefix`."""
    plain = {
        names.STORE_ENDPOINTS[store.scheme]: store.endpoint,
        names.REGION_VARIABLE: store.region if store.scheme == "s3" else None,
        names.STORAGE_ACCOUNT_VARIABLE: store.storage_account,
    }
    held, authorities = store.credentials_secret_ref, f"{prefix}{names.STORE_AUTHORITIES_VARIABLE}"
    return (
        *((pod.secret(f"{prefix}{key}", held.name, key) for key in keys_of(store)) if held is not None else ()),
        *({"name": f"{prefix}{name}", "value": pod.literal(value)} for name, value in plain.items() if value is not None),
        *((pod.secret(authorities, store.ca_secret_ref.name, names.AUTHORITIES_KEY),) if store.ca_secret_ref else ()),
    )
