"""Builds the Kubernetes objects of a ZooKeeperCluster. zoo.cfg's keys: ZooKeeper's administrator guide, 3.9."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.api.default_images import image_of
from herdkeeper.certificates.holders import fingerprints
from herdkeeper.certificates.settings import member_lines
from herdkeeper.codecs.zookeeper.membership import Membership, Role, file_name
from herdkeeper.codecs.zookeeper.super_digest import super_digest
from herdkeeper.planning import pods as pod
from herdkeeper.planning.identities import secret_of
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json
from herdkeeper.zookeeper.state import ANNOTATED_STEPS, Encryption, Ensemble, server_of

COMPONENT = names.ZOOKEEPER_COMPONENT
FEW_BUFFERS = ("-Dio.netty.allocator.numHeapArenas=1", "-Dio.netty.allocator.numDirectArenas=1")
"""Otherwise Netty, which does TLS, keeps memory chunks per pair of cores: 24 MiB of a small member."""
CLIENTS_MOUNT, MEMBERS_MOUNT = "/tls/clients", "/tls/members"
_SERVING = "/opt/zookeeper/serving.sh"
_AT_EITHER_PORT = ("/bin/sh", "-c", f"{_SERVING} || {_SERVING} {names.ZOOKEEPER_LOOPBACK_PORT}")
_PROBES: Mapping[Encryption, tuple[str, ...]] = {
    Encryption.NONE: (_SERVING,),
    # The plain port of a running member moves to the loopback.
    Encryption.ACCEPTED: _AT_EITHER_PORT,
    Encryption.USED: _AT_EITHER_PORT,
    Encryption.REQUIRED: (_SERVING, str(names.ZOOKEEPER_LOOPBACK_PORT)),
}
LINGER_SECONDS = 5
"""A member serves on for so long once it is to stop. A drain stops a leading SQL node and a bookie in the same second: the next leader,
and each ledger on that bookie, need ZooKeeper at once, and would wait for an election if this member led (decision 0109).
"""


def build_zookeeper(ensemble: Ensemble) -> tuple[Json, ...]:
    """Returns all objects except claims and Secrets, in the order of application.

    The StatefulSet comes last: pods must not restart on an old ConfigMap. The membership is not part of the hash that rolls the pods:
    running members know it already.
    """
    cluster, named = ensemble.cluster, ensemble.named
    encryption = ensemble.encryption
    config = _config(cluster, encryption)
    membership, follower = ensemble.initial_membership, ensemble.unlisted_follower
    # ZooKeeper starts only a member that finds itself in its file. The one that is not listed yet begins with a file without a version,
    # which is older than any other, so that it learns the committed membership, and that it is not in it, from the first one it meets.
    closed = encryption is Encryption.REQUIRED
    unlisted = () if follower is None else (server_of(cluster, follower, Role.PARTICIPANT, closed=closed),)
    oldest = Membership(0, (*membership.servers, *unlisted))
    files = {"zoo.cfg": config, file_name(0): oldest.file, file_name(membership.version): membership.file}
    clients = {
        **({"client": names.ZOOKEEPER_CLIENT_PORT} if encryption.accepts_plaintext else {}),
        **({"secure": names.ZOOKEEPER_SECURE_PORT} if encryption.has_certificates else {}),
    }
    ports = {
        **clients,
        "quorum": names.ZOOKEEPER_QUORUM_PORT,
        "election": names.ZOOKEEPER_ELECTION_PORT,
        "admin": names.ZOOKEEPER_ADMIN_PORT,
    }
    read_at_start = ensemble.security.read_at_start if ensemble.security is not None else {}
    return (
        pod.config_map(cluster, COMPONENT, named.config_map, {**files, names.FOUNDING_KEY: "true" if ensemble.founding else "false"}),
        pod.headless_service(cluster, COMPONENT, named.members_service, ports),
        pod.client_service(cluster, COMPONENT, named.client_service, clients),
        pod.disruption_budget(cluster, COMPONENT, named.disruption_budget),
        _stateful_set(
            ensemble,
            pod.config_hash({"zoo.cfg": config, names.SUPER_DIGEST_KEY: super_digest(_password(ensemble))}),
            read_at_start,
        ),
    )


def build_zookeeper_claim(ensemble: Ensemble, number: int) -> Json:
    """Returns the claim of a new member. The operator creates it once; the StatefulSet adopts it by name."""
    meta = pod.retained_metadata(ensemble.cluster, COMPONENT, ensemble.named.claim(number))
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {**meta, "annotations": {names.FOUNDED_ANNOTATION: names.NEW, names.ENSEMBLE_ANNOTATION: ensemble.origin}},
        "spec": pod.claim_spec(ensemble.cluster.spec.storage),
    }


def build_authority(cluster: ZooKeeperCluster, name: str, data: Mapping[str, str]) -> Json:
    """Returns the Secret of an authority. It is kept with the volumes: without it no certificate can be renewed."""
    return secret_of(pod.retained_metadata(cluster, COMPONENT, name), data)


def build_zookeeper_secret(ensemble: Ensemble) -> Json:
    """Returns the Secret with the password for membership changes, and its digest for the members."""
    password = _password(ensemble)
    data = {names.PASSWORD_KEY: password, names.SUPER_DIGEST_KEY: super_digest(password)}
    return secret_of(pod.retained_metadata(ensemble.cluster, COMPONENT, ensemble.named.reconfig_secret), data)


def _password(ensemble: Ensemble) -> str:
    return ensemble.password or ensemble.fresh_password


def _config(cluster: ZooKeeperCluster, encryption: Encryption) -> str:
    lines = {
        "tickTime": 2000,
        "initLimit": 30,
        # Followers abandon a leader that is silent for so many ticks (4 s; it pings every second). Until then their clients wait, so this
        # bounds the cost of a lost machine with the leader. In turn, a member whose disk stalls for as long falls behind, and recovers.
        # ZooKeeper's sample has 5, its container image 2.
        "syncLimit": 2,
        "dataDir": "/data/store",
        "reconfigEnabled": "true",
        "standaloneEnabled": "false",
        # A new pod's name resolves late, or still to the old address. A member that listens on its name mixes the new address with the old
        # one. When it leads, it finds another leader, and starts over forever.
        "quorumListenOnAllIPs": "true",
        # 0: a member whose port is still taken retries forever instead of giving up.
        "electionPortBindRetry": 0,
        "4lw.commands.whitelist": "srvr",
        "admin.serverPort": names.ZOOKEEPER_ADMIN_PORT,
        # Both are on by default, and would let every client of the port replace or read all data: the root's ACL permits everything to
        # everybody.
        "admin.restore.enabled": "false",
        "admin.snapshot.enabled": "false",
        # A member begins another log, with a snapshot, after 50,000 to 100,000 transactions, or half of this to all of it. ZooKeeper's own
        # 4 GiB would be most of a volume, five times. A log counts 64 MiB at least, as its file is made so long.
        # What is kept, with the default memory: 4 logs of 256 MiB, and 3 snapshots, each below the heap of 256 MiB: 1.75 of 5 GiB.
        # So 3.25 GiB are for the hour until the next purge. With 128 MiB of log for each snapshot of 256 MiB that is 1.1 GiB of log, or
        # 0.3 MiB/s. With 50,000 transactions for each it is 170 of them a second. Fewer snapshots can't be kept.
        "snapSizeLimitInKb": 256 << 10,
        "autopurge.snapRetainCount": 3,
        "autopurge.purgeInterval": 1,
        "maxClientCnxns": 0,
        **_encryption_lines(encryption),
    }
    return pod.properties(lines, cluster.spec.config)


def _encryption_lines(encryption: Encryption) -> dict[str, object]:
    if not encryption.has_certificates:
        return {}
    use, plaintext = encryption is not Encryption.ACCEPTED, encryption.accepts_plaintext
    return member_lines(CLIENTS_MOUNT, MEMBERS_MOUNT, names.ZOOKEEPER_SECURE_PORT, use=use, plaintext=plaintext)


def _start_variable(files: Mapping[str, str]) -> list[Json]:
    """The variable by which a member starts only with these files, and which restarts it for other ones."""
    content = hashlib.sha256("".join(files.values()).encode()).hexdigest()
    return [{"name": "READ_AT_START", "value": " ".join((content, *files))}] if files else []


def starts_with(stateful_set: Json, files: Mapping[str, str]) -> bool:
    """Returns whether members of this StatefulSet start with these files."""
    (container,) = stateful_set["spec"]["template"]["spec"]["containers"]
    return files != {} and _start_variable(files)[0] in container.get("env", ())


def _stateful_set(ensemble: Ensemble, config_hash: str, read_at_start: Mapping[str, str]) -> Json:
    cluster, named, encryption = ensemble.cluster, ensemble.named, ensemble.encryption
    selector = names.selector(COMPONENT, cluster.metadata.name)
    # A StatefulSet adopts claims by this template's name. The operator creates them earlier, so the StatefulSet creates one only in place
    # of a deleted one. That one lacks our labels and annotations, which an existing StatefulSet's template can't get.
    template = {"metadata": {"name": "data"}, "spec": pod.claim_spec(cluster.spec.storage)}
    has = encryption.has_certificates
    certificates = ((named.clients_secret, CLIENTS_MOUNT), (named.members_secret, MEMBERS_MOUNT)) if has else ()
    serving = {"exec": {"command": [*_PROBES[encryption]]}, "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 3}
    marks = {names.CONFIG_ANNOTATION: config_hash}
    if encryption in ANNOTATED_STEPS:
        marks[names.QUORUM_TLS_ANNOTATION] = ANNOTATED_STEPS[encryption]
    if trusted := fingerprints(read_at_start.get(f"{CLIENTS_MOUNT}/{names.AUTHORITIES_KEY}", "")):
        marks[names.TRUSTED_ANNOTATION] = " ".join(sorted(trusted))
    container = {
        "name": "zookeeper",
        "image": image_of(cluster),
        "env": [
            {"name": "METRICS_PORT", "value": str(names.ZOOKEEPER_METRICS_PORT)},
            *([{"name": "JVM_OPTIONS", "value": " ".join(FEW_BUFFERS)}] if certificates else []),
            *_start_variable(read_at_start),
            *pod.log_variables(cluster.spec.pods),
        ],
        "ports": pod.metrics_port(names.ZOOKEEPER_METRICS_PORT),
        "resources": pod.compute(cluster.spec.resources),
        "readinessProbe": serving,
        "livenessProbe": {**pod.http_probe("/commands/ruok", names.ZOOKEEPER_ADMIN_PORT, 6), "initialDelaySeconds": 240 if has else 60},
        "lifecycle": {"preStop": {"exec": {"command": ["sleep", str(LINGER_SECONDS)]}}},
        "volumeMounts": [
            pod.CONFIG_MOUNT,
            {"name": "reconfig", "mountPath": "/reconfig", "readOnly": True},
            {"name": "data", "mountPath": "/data"},
            *({"name": secret, "mountPath": mount, "readOnly": True} for secret, mount in certificates),
        ],
    }
    # Members get only the digest, not the password.
    digest = {
        "secretName": named.reconfig_secret,
        "items": [{"key": names.SUPER_DIGEST_KEY, "path": names.SUPER_DIGEST_KEY}],
        "defaultMode": 0o440,
    }
    volumes = [pod.config_volume(named.config_map), {"name": "reconfig", "secret": digest}]
    volumes += [{"name": secret, "secret": {"secretName": secret, "defaultMode": 0o440}} for secret, _ in certificates]
    spec = {**pod.pod_spec(cluster, container, volumes, 30), **pod.placed(selector, cluster.spec.pods)}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": pod.metadata(cluster, COMPONENT, named.stateful_set),
        "spec": {
            "replicas": len(ensemble.pods),
            "serviceName": named.members_service,
            # Parallel: the first member alone has no quorum and would never become ready.
            "podManagementPolicy": "Parallel",
            # The operator deletes outdated pods itself: the leader last, and only while all members are in step.
            "updateStrategy": {"type": "OnDelete"},
            "persistentVolumeClaimRetentionPolicy": pod.KEPT_CLAIMS,
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": pod.template_metadata(names.labels(COMPONENT, cluster.KIND, cluster.metadata.name), marks, cluster.spec.pods),
                "spec": spec,
            },
            "volumeClaimTemplates": [template],
        },
    }
