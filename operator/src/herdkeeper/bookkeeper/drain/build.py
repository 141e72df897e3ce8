"""Objects of a drain: a round's record, the Job that moves its ledgers and reads them back, and the Job that removes the identity.

Modes, arguments and exit codes are those of images/bookkeeper/entrypoint.sh and of herdkeeper_jobs.audit.read_back_cli.
"""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import BookKeeperCluster
from herdkeeper.api.default_images import image_of
from herdkeeper.bookkeeper.build.bookies import BookieIdentity, copied_per_second, identity_of, identity_secret
from herdkeeper.bookkeeper.build.racks import MOUNT, racks_volume
from herdkeeper.codecs.bookkeeper.share import Share, record_of
from herdkeeper.planning import pods as pod
from herdkeeper.planning.identities import python_identity
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json

RECORD_KEY, OPEN_KEY, WRITTEN_KEY, BYTES_KEY, KEPT_KEY = "record", "open", "written", "bytes", "kept"
"""In a round's ConfigMap: what the bookie held, and the estimated bytes. Also which open ledgers were no longer written there, which others
are not read while open, and that its drain was cancelled."""
RECORD = "/record"
"""Mount path of the record."""
RETIRE_SECONDS = 900
"""BookKeeper's decommissionbookie waits half a minute for the auditor, and indefinitely for ledgers, of which there are none."""


@dataclass(frozen=True)
class DrainSource:
    """What a drain's Jobs need. The address (`host:port,host:port`) is for clients of bookies, whose own configuration may have another."""

    zookeeper_address: str
    image: str
    bookies_address: str | None = None


def build_record(cluster: BookKeeperCluster, bookie: BookieIdentity, round_number: int, shares: tuple[Share, ...]) -> Json:
    """Returns the ConfigMap of a round."""
    turned = (share.ledger_id for share in shares if not share.closed and not share.written)
    data = {
        RECORD_KEY: record_of(shares),
        OPEN_KEY: "".join(f"{ledger_id}\n" for ledger_id in turned),
        WRITTEN_KEY: "".join(f"{share.ledger_id}\n" for share in shares if share.written),
        BYTES_KEY: str(sum(share.payload_bytes for share in shares)),
    }
    name = cluster.names.drain_round(bookie.number, round_number)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(cluster, bookie, name), "data": data}


def is_kept(record: Json) -> bool:
    """Returns whether a round's record is kept from a cancelled drain."""
    return KEPT_KEY in (record.get("data") or {})


def kept_record(record: Json) -> Json:
    """Returns a cancelled drain's record for the next one, which moves and reads again what writers may have written meanwhile."""
    meta = {key: record["metadata"][key] for key in ("name", "namespace", "uid", "labels", "ownerReferences")}
    written = record["data"].get(WRITTEN_KEY, "") + record["data"].get(OPEN_KEY, "")
    data = {**record["data"], OPEN_KEY: "", WRITTEN_KEY: written, KEPT_KEY: "true"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def build_move(cluster: BookKeeperCluster, bookie: BookieIdentity, round_number: int, source: DrainSource) -> Json:
    """Returns the Job of a round: BookKeeper copies, then a program of the project reads back.

    Copies go where autorecovery would put them, at its rate: a drain starts only with autorecovery.
    """
    named = cluster.names
    name = named.drain_round(bookie.number, round_number)
    rate = copied_per_second(cluster)
    record = {"name": "record", "mountPath": RECORD, "readOnly": True}
    java, python = identity_of(cluster, source.zookeeper_address), python_identity(identity_secret(cluster, source.zookeeper_address))
    move = {
        "name": "move",
        "image": image_of(cluster),
        "args": ["move-recorded", bookie.bookie_id, f"{RECORD}/{RECORD_KEY}", "-1" if rate is None else str(rate)],
        # It copies many ledgers concurrently, and its heap is a quarter of this.
        "resources": pod.compute(cluster.spec.resources),
        "volumeMounts": [pod.CONFIG_MOUNT, MOUNT, record, *java.mounts],
        **({"env": [*java.variables]} if java.variables else {}),
    }
    arguments = (
        *("--zookeeper", source.zookeeper_address),
        *("--ledgers-root", named.ledgers_root),
        *("--bookie", bookie.bookie_id),
        *("--record", f"{RECORD}/{RECORD_KEY}"),
    )
    read_back = {
        "name": "read-back",
        "image": source.image,
        "args": ["python3", "-m", "herdkeeper_jobs.audit.read_back_cli", *arguments],
        "resources": pod.compute(cluster.spec.auto_recovery.resources),
        "volumeMounts": [record, *python.mounts],
        **({"env": [*python.variables]} if python.variables else {}),
    }
    volumes = [
        pod.config_volume(named.autorecovery),
        racks_volume(named.racks_config_map),
        {"name": "record", "configMap": {"name": name}},
        *python.volumes,
    ]
    spec = {**pod.pod_spec(cluster, read_back, volumes, 30), "initContainers": [pod.secured(move)]}
    return _job(cluster, bookie, name, {"backoffLimit": 6, "template": {"spec": spec}})


def build_retirement(cluster: BookKeeperCluster, bookie: BookieIdentity, source: DrainSource) -> Json:
    """Returns the Job that removes the identity of a stopped bookie that no ledger names."""
    named, identity = cluster.names, identity_of(cluster, source.bookies_address or source.zookeeper_address)
    container = {
        "name": "retire",
        "image": image_of(cluster),
        "args": ["shell", "decommissionbookie", "-bookieid", bookie.bookie_id],
        "resources": pod.compute(cluster.spec.auto_recovery.resources),
        "volumeMounts": [pod.CONFIG_MOUNT, *identity.mounts],
        **({"env": [*identity.variables]} if identity.variables else {}),
    }
    spec = pod.pod_spec(cluster, container, [pod.config_volume(named.config_map), *identity.volumes], 30)
    return _job(
        cluster,
        bookie,
        named.retire_job(bookie.number),
        {"backoffLimit": 3, "activeDeadlineSeconds": RETIRE_SECONDS, "template": {"spec": spec}},
    )


def _job(cluster: BookKeeperCluster, bookie: BookieIdentity, name: str, spec: Json) -> Json:
    """Pods run one after the other: two at once would copy everything twice."""
    meta = _metadata(cluster, bookie, name)
    pod_spec = {**spec["template"]["spec"], **pod.admitted(cluster.spec.pods), "restartPolicy": "Never"}
    template = {"metadata": {"labels": meta["labels"]}, "spec": pod_spec}
    ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    job = {**spec, "podReplacementPolicy": "Failed", "podFailurePolicy": {"rules": [ignored]}, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": job}


def _metadata(cluster: BookKeeperCluster, bookie: BookieIdentity, name: str) -> Json:
    labels = {**names.labels(names.DRAIN_COMPONENT, cluster.KIND, cluster.metadata.name), names.BOOKIE_LABEL: str(bookie.number)}
    return {**pod.metadata(cluster, names.DRAIN_COMPONENT, name), "labels": labels}
