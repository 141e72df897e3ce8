"""ZooKeeperCluster -> its Kubernetes objects. zoo.cfg's keys: ZooKeeper's administrator guide, 3.9."""

from __future__ import annotations

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.build import pod
from herdkeeper.build.pod import Json
from herdkeeper.domain import names
from herdkeeper.domain.names import ObjectKey, ZooKeeperNames

COMPONENT = names.ZOOKEEPER_COMPONENT


def build_zookeeper(cluster: ZooKeeperCluster, *, founding: bool) -> tuple[Json, ...]:
    """All objects but the claims, in the order in which they are applied.

    `founding` is true only while every claim carries founded="false": only then may an empty member vote.
    StatefulSet last: a changed ConfigMap must exist first, else pods restart on the old one.
    """
    named = _names(cluster)
    files = _files(cluster)
    ports = {
        "client": names.ZOOKEEPER_CLIENT_PORT,
        "quorum": names.ZOOKEEPER_QUORUM_PORT,
        "election": names.ZOOKEEPER_ELECTION_PORT,
        "admin": names.ZOOKEEPER_ADMIN_PORT,
    }
    return (
        pod.config_map(cluster, COMPONENT, named.config_map, {**files, "founding": "true" if founding else "false"}),
        pod.headless_service(cluster, COMPONENT, named.members_service, ports),
        pod.client_service(cluster, COMPONENT, named.client_service, {"client": names.ZOOKEEPER_CLIENT_PORT}),
        pod.disruption_budget(cluster, COMPONENT, named.disruption_budget),
        _stateful_set(cluster, files),
    )


def build_zookeeper_claim(cluster: ZooKeeperCluster, number: int) -> Json:
    """The claim of a new member. Created by the operator, once: the StatefulSet adopts it by name."""
    meta = pod.retained_metadata(cluster, COMPONENT, _names(cluster).claim(number))
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {**meta, "annotations": {names.FOUNDED_ANNOTATION: "false"}},
        "spec": pod.claim_spec(cluster.spec.storage),
    }


def _names(cluster: ZooKeeperCluster) -> ZooKeeperNames:
    return ZooKeeperNames(ObjectKey(cluster.metadata.namespace, cluster.metadata.name))


def _files(cluster: ZooKeeperCluster) -> dict[str, str]:
    named = _names(cluster)
    lines = {
        "tickTime": 2000,
        "initLimit": 30,
        "syncLimit": 5,
        "dataDir": "/data/store",
        "reconfigEnabled": "true",
        "standaloneEnabled": "false",
        # 0: a member whose name does not resolve yet tries for ever instead of giving up.
        "electionPortBindRetry": 0,
        "4lw.commands.whitelist": "srvr",
        "admin.serverPort": names.ZOOKEEPER_ADMIN_PORT,
        "autopurge.snapRetainCount": 5,
        "autopurge.purgeInterval": 1,
        "maxClientCnxns": 0,
    }
    members = "".join(
        f"server.{number + 1}={named.host(number)}:{names.ZOOKEEPER_QUORUM_PORT}:{names.ZOOKEEPER_ELECTION_PORT}"
        f":participant;{names.ZOOKEEPER_CLIENT_PORT}\n"
        for number in range(cluster.spec.replicas)
    )
    return {"zoo.cfg": pod.properties(lines, cluster.spec.config), "zoo.cfg.dynamic": members}


def _stateful_set(cluster: ZooKeeperCluster, files: dict[str, str]) -> Json:
    named = _names(cluster)
    selector = names.selector(COMPONENT, cluster.metadata.name)
    # A StatefulSet adopts claims by this template's name; it never makes one, since the operator made them before.
    template = {"metadata": {"name": "data"}, "spec": pod.claim_spec(cluster.spec.storage)}
    serving = {"exec": {"command": ["/opt/zookeeper/serving.sh"]}, "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 3}
    container = {
        "name": "zookeeper",
        "image": cluster.spec.image,
        "resources": pod.compute(cluster.spec.resources),
        "readinessProbe": serving,
        "livenessProbe": {**pod.http_probe("/commands/ruok", names.ZOOKEEPER_ADMIN_PORT, 6), "initialDelaySeconds": 60},
        "volumeMounts": [pod.CONFIG_MOUNT, {"name": "data", "mountPath": "/data"}],
    }
    spec = {**pod.pod_spec(container, [pod.config_volume(named.config_map)], 30), **pod.spread(selector)}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": pod.metadata(cluster, COMPONENT, named.stateful_set),
        "spec": {
            "replicas": cluster.spec.replicas,
            "serviceName": named.members_service,
            # Parallel: the first member alone is no quorum and would never become ready.
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate"},
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {
                    "labels": names.labels(COMPONENT, cluster.KIND, cluster.metadata.name),
                    "annotations": {names.CONFIG_ANNOTATION: pod.config_hash(files)},
                },
                "spec": spec,
            },
            "volumeClaimTemplates": [template],
        },
    }
