"""HerdDBCluster -> its Kubernetes objects. Keys: HerdDB's ServerConfiguration, 0.29, and images/herddb/README.md."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from herdkeeper.api import HerdDBCluster
from herdkeeper.api.default_images import image_of
from herdkeeper.api.herddb_cluster import Tls
from herdkeeper.bookkeeper.build.racks import MOUNT, placement_lines, racks_volume
from herdkeeper.certificates.settings import bookkeeper_lines
from herdkeeper.codecs.herddb.users import SqlUser, encode_users
from herdkeeper.herddb.state.log_store import LogStore
from herdkeeper.planning import pods as pod
from herdkeeper.planning.identities import FOLDER, java_identity
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json
from herdkeeper.shared.quantity import bytes_of

COMPONENT = names.HERDDB_COMPONENT
TLS_MOUNT = "/tls"

ZOOKEEPER_SESSION_SECONDS = 6
"""Of HerdDB's own session and of its BookKeeper client's, which takes this time over (`zkTimeout`). ZooKeeper's client gives a silent
member up after two thirds of it, and an address that doesn't answer after the session divided by the members. With HerdDB's own 40 s a
leader that turned to a member that had just gone sent no heartbeat for 14 s, wrote on all the same, and was replaced after 10
(`failover.maxLeaderInactivitySeconds`). A session that expires is opened anew and costs nothing: neither keeps ephemeral znodes, and
BookKeeper's client sets its watches again. A shorter one would expire by a pause of the JVM that nobody would notice otherwise, would leave
a node that starts while the ensemble elects less time for its first connection (it waits for one session), and can't go below two ticks
of the ensemble, 4 s. What a lost connection has cut off BookKeeper's client would ask again only after the same time; the node program sees
to it that it does within a second (`PromptMetadataDriver`). Bookies and autorecovery keep BookKeeper's 10 s: their sessions say who lives,
and no client waits for what they ask."""

ASK_ANOTHER_BOOKIE_MILLIS = 250
"""After so long without an answer BookKeeper's client reads from another copy, too; by its own default after 2 s. A boot reads a log in
lots of 1,000 entries, and waits for it with each lot while a bookie hangs, such as the one on the machine that the last leader was on. It
asks twice only where none of the bookies asked has answered anything. (`reorderReadSequenceEnabled`, by which such a bookie would be asked
last, stays off: 4.16.6 cuts the entry at which a write to a bookie failed to 20 bits before it computes from it whom to read from, and so
takes another bookie for it in longer ledgers; a recovery could count one bookie's "no such entry" twice.)"""


@dataclass(frozen=True)
class _Template:
    """What the pods are made by, besides the resource: the hash of their configuration, the mounted Secret, and where the log is."""

    config: str
    secret: str
    log: LogStore


def build_herddb(cluster: HerdDBCluster, log: LogStore, secret: str, nodes: int | None = None) -> tuple[Json, ...]:
    """All objects but the Secret, in the order in which they are applied. `secret` has the keys username, password, users, token; what is
    changed in it the nodes take up while they run. `nodes`: how many nodes there shall be for now, when that is not what is declared.
    """
    named = cluster.names
    files = {"server.properties": _server_properties(cluster, log)}
    template = _Template(pod.config_hash(files), secret, log)
    ports = {"sql": names.HERDDB_SQL_PORT, "http": names.HERDDB_HTTP_PORT}
    return (
        pod.config_map(cluster, COMPONENT, named.config_map, files),
        pod.headless_service(cluster, COMPONENT, named.nodes_service, ports),
        pod.client_service(cluster, COMPONENT, named.client_service, {"sql": names.HERDDB_SQL_PORT}),
        pod.disruption_budget(cluster, COMPONENT, named.disruption_budget),
        _stateful_set(cluster if nodes is None else _with_nodes(cluster, nodes), template),
    )


def build_herddb_secret(cluster: HerdDBCluster, name: str, users: Sequence[SqlUser], token: str) -> Json:
    """The Secret that the nodes mount: the administrator (the first of the users), HerdDB's users file, and the token of the nodes' HTTP
    port.

    ValueError for what the users file can't hold.
    """
    administrator = users[0]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": pod.retained_metadata(cluster, COMPONENT, name),
        "type": "Opaque",
        "data": {
            names.USERNAME_KEY: _base64(administrator.username),
            names.PASSWORD_KEY: _base64(administrator.password),
            **users_data(users, token),
            **token_data(token),
        },
    }


def users_data(users: Sequence[SqlUser], token: str) -> dict[str, str]:
    """HerdDB's users file as the Secret's data. Its revision is made with the token, so that nobody can try passwords on it."""
    return {names.USERS_KEY: _base64(encode_users(users, token))}


def token_data(token: str) -> dict[str, str]:
    """The token as the Secret's data."""
    return {names.TOKEN_KEY: _base64(token)}


def _with_nodes(cluster: HerdDBCluster, nodes: int) -> HerdDBCluster:
    return cluster.model_copy(update={"spec": cluster.spec.model_copy(update={"replicas": nodes})})


def _base64(text: str) -> str:
    """As the API server stores it. Under `stringData` it could never be compared with what is stored."""
    return base64.b64encode(text.encode()).decode()


def _server_properties(cluster: HerdDBCluster, log: LogStore) -> str:
    ledgers = cluster.spec.ledgers
    retention = ledgers.retention_hours * 3_600_000
    lines = {
        "server.mode": "cluster",
        "server.host": "0.0.0.0",  # noqa: S104 - the pod's own network
        "server.port": names.HERDDB_SQL_PORT,
        "server.advertised.port": names.HERDDB_SQL_PORT,
        "server.base.dir": "/data/herddb",
        "server.zookeeper.address": log.zookeeper_address,
        "server.zookeeper.path": cluster.names.herd_root,
        "server.zookeeper.session.timeout": ZOOKEEPER_SESSION_SECONDS * 1000,
        "server.bookkeeper.start": "false",
        "server.bookkeeper.ledgers.path": log.ledgers_root,
        "server.bookkeeper.ensemble.size": ledgers.ensemble_size,
        "server.bookkeeper.write.quorum.size": ledgers.write_quorum,
        "server.bookkeeper.ack.quorum.size": ledgers.ack_quorum,
        "server.bookkeeper.ledgers.max.size": bytes_of(ledgers.max_size),
        "server.bookkeeper.ledgers.retention.period": retention,
        # HerdDB refuses to start when it is above half of the retention.
        "server.checkpoint.period": min(900_000, retention // 2),
        # The default of two minutes blocks all tablespaces of a node. In seconds; the spelling is HerdDB's.
        "server.bookkeeper.wait.cluser.ready.timeout": 10,
        # HerdDB raises E, Wq and Aq to the expected replicas; pinned to 1 the declared sizes hold.
        "tablespace.default.replica.count": 1,
        "server.halt.on.tablespace.boot.error": "false",
        "herdkeeper.credentials.dir": "/credentials",
        "herdkeeper.http.port": names.HERDDB_HTTP_PORT,
        **_tls_lines(cluster),
        # what stands behind `bookkeeper.` is handed to its client
        "bookkeeper.speculativeReadTimeout": ASK_ANOTHER_BOOKIE_MILLIS,
        "bookkeeper.firstSpeculativeReadLACTimeout": ASK_ANOTHER_BOOKIE_MILLIS,
        **{f"bookkeeper.{key}": value for key, value in placement_lines(log.placement).items()},
        **({f"bookkeeper.{key}": value for key, value in bookkeeper_lines(FOLDER).items()} if log.asks_for_certificates else {}),
    }
    return pod.properties(lines, cluster.spec.config)


def _tls_lines(cluster: HerdDBCluster) -> dict[str, str]:
    """`server.ssl` as well: a node program that is too old for the others does not serve in plain text then."""
    tls = cluster.spec.tls
    if tls is None:
        return {}
    return {"server.ssl": "true", "herdkeeper.tls.dir": TLS_MOUNT, "herdkeeper.tls.plaintext": tls.plaintext.lower()}


def _tls_volume(tls: Tls) -> Json:
    """What a node serves with; whom clients trust is none of its business."""
    keys = (names.CERTIFICATE_KEY, names.PRIVATE_KEY_KEY)
    items = [{"key": key, "path": key} for key in keys]
    return {"name": names.TLS_VOLUME, "secret": {"secretName": tls.secret_name, "defaultMode": 0o440, "items": items}}


def _stateful_set(cluster: HerdDBCluster, template: _Template) -> Json:
    named, log = cluster.names, template.log
    labels = names.labels(COMPONENT, cluster.KIND, cluster.metadata.name)
    identity = java_identity(named.identity_secret if log.asks_for_certificates else None, "HERDDB_JAVA_OPTS")
    selector = names.selector(COMPONENT, cluster.metadata.name)
    host = f"$(POD_NAME).{named.nodes_service}.{cluster.metadata.namespace}.svc"
    container = {
        "name": "herddb",
        "image": image_of(cluster),
        "args": ["--config", "/config/server.properties", "--node-id", "$(POD_NAME)", "--advertised-host", host],
        "env": [pod.field("POD_NAME", "metadata.name"), *identity.variables],
        "ports": pod.metrics_port(names.HERDDB_HTTP_PORT),
        "resources": pod.compute(cluster.spec.resources),
        "readinessProbe": pod.http_probe("/readyz", names.HERDDB_HTTP_PORT),
        "livenessProbe": {**pod.http_probe("/healthz", names.HERDDB_HTTP_PORT, 6), "initialDelaySeconds": 120},
        "volumeMounts": [
            pod.CONFIG_MOUNT,
            MOUNT,
            {"name": "credentials", "mountPath": "/credentials", "readOnly": True},
            *([{"name": names.TLS_VOLUME, "mountPath": TLS_MOUNT, "readOnly": True}] if cluster.spec.tls else []),
            {"name": "data", "mountPath": "/data"},
            *identity.mounts,
        ],
    }
    volumes = [
        pod.config_volume(named.config_map),
        racks_volume(log.placement.config_map),
        {"name": "credentials", "secret": {"secretName": template.secret, "defaultMode": 0o440}},
        *([_tls_volume(cluster.spec.tls)] if cluster.spec.tls else []),
        *identity.volumes,
    ]
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": pod.metadata(cluster, COMPONENT, named.stateful_set),
        "spec": {
            "replicas": cluster.spec.replicas,
            "serviceName": named.nodes_service,
            "podManagementPolicy": "Parallel",
            # The operator restarts the nodes itself (herddb/plan/restart.py): followers first, leaders after they were relieved.
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": pod.template_metadata(
                    names.labels(COMPONENT, cluster.KIND, cluster.metadata.name),
                    {names.CONFIG_ANNOTATION: template.config},
                    cluster.spec.pods,
                ),
                "spec": {**pod.pod_spec(container, volumes, 60), **pod.placed(selector, cluster.spec.pods)},
            },
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "data", "labels": labels},
                    "spec": pod.claim_spec(cluster.spec.storage),
                }
            ],
        },
    }
