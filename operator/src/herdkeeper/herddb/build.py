"""Builds the Kubernetes objects of a HerdDBCluster. Keys: HerdDB's ServerConfiguration, 0.29, and images/herddb/README.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from herdkeeper.api import HerdDBCluster
from herdkeeper.api.default_images import image_of
from herdkeeper.api.herddb_cluster import Tls
from herdkeeper.bookkeeper.build.racks import MOUNT, placement_lines, racks_volume
from herdkeeper.certificates.settings import bookkeeper_lines
from herdkeeper.codecs.herddb.users import SqlUser, encode_users
from herdkeeper.herddb.state.log_store import LogStore
from herdkeeper.herddb.state.tls import CERTIFICATE_ARGUMENT, tls_of
from herdkeeper.planning import pods as pod
from herdkeeper.planning.identities import FOLDER, java_identity, secret_of
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json
from herdkeeper.shared.quantity import bytes_of

COMPONENT = names.HERDDB_COMPONENT
TLS_MOUNT = "/tls"
PROPERTIES = "server.properties"

ZOOKEEPER_SESSION_SECONDS = 6
"""Session timeout of HerdDB and its BookKeeper client (`zkTimeout`).

ZooKeeper's client abandons a silent member after two thirds of the session, and an unreachable address after the session divided by the
members. With HerdDB's default of 40 s, a leader that chose a lost member sent no heartbeat for 14 s. It kept writing, and was replaced
after 10 s (`failover.maxLeaderInactivitySeconds`).

An expired session is reopened at no cost: neither client keeps ephemeral znodes, and BookKeeper's sets its watches again. A shorter session
would expire in unnoticed JVM pauses. It would also leave a starting node less time for its first connection (one session) during an
election. The minimum is two ticks of the ensemble, 4 s.

After a lost connection BookKeeper's client would retry interrupted reads only after this time; the node program retries within a second
(`PromptMetadataDriver`). Bookies and autorecovery keep BookKeeper's 10 s: their sessions show who is alive, and no client waits for their
reads."""

ASK_ANOTHER_BOOKIE_MILLIS = 250
"""After so long without an answer, BookKeeper's client also reads from another copy; its default is 2 s.

A boot reads a log in batches of 1,000 entries, and would wait in each batch for a hanging bookie, e.g. on the last leader's machine. It
reads twice only if no asked bookie has answered anything.

`reorderReadSequenceEnabled`, which would ask such a bookie last, stays off. 4.16.6 cuts the entry id of a failed write to 20 bits before it
computes the bookies to read from. So in longer ledgers it picks the wrong one. A recovery could count one bookie's "no such entry" twice.
"""


def build_herddb(cluster: HerdDBCluster, log: LogStore, secret: str, nodes: int | None = None, most_away: int = 1) -> tuple[Json, ...]:
    """Returns all objects except the Secret, in the order of application.

    `secret` has the keys username, password, users, token; running nodes load its changes. `nodes`: how many nodes should run for now, if
    not the declared number. `most_away`: how many of them may be evicted at a time.
    """
    named = cluster.names
    files = {PROPERTIES: _server_properties(cluster, log)}
    ports = {"sql": names.HERDDB_SQL_PORT, "http": names.HERDDB_HTTP_PORT}
    return (
        pod.config_map(cluster, COMPONENT, named.config_map, files),
        pod.headless_service(cluster, COMPONENT, named.nodes_service, ports),
        pod.client_service(cluster, COMPONENT, named.client_service, {"sql": names.HERDDB_SQL_PORT}),
        pod.disruption_budget(cluster, COMPONENT, named.disruption_budget, most_away=most_away),
        _stateful_set(cluster, log, secret, pod.config_hash(files), nodes),
    )


def build_herddb_secret(cluster: HerdDBCluster, name: str, users: Sequence[SqlUser], token: str) -> Json:
    """Returns the Secret that the nodes mount: the administrator (the first user), HerdDB's users file, and the token of the nodes' HTTP
    port.

    Raises ValueError for what the users file can't hold.
    """
    login = {names.USERNAME_KEY: users[0].username, names.PASSWORD_KEY: users[0].password}
    # with the token, the file's revision can't be used to guess passwords
    derived = {names.USERS_KEY: encode_users(users, token), names.TOKEN_KEY: token}
    return secret_of(pod.retained_metadata(cluster, COMPONENT, name), {**login, **derived})


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
        # HerdDB refuses to start if it exceeds half of the retention.
        "server.checkpoint.period": min(900_000, retention // 2),
        # The default of two minutes blocks all tablespaces of a node. In seconds; the spelling is HerdDB's.
        "server.bookkeeper.wait.cluser.ready.timeout": 10,
        # HerdDB raises E, Wq and Aq to the expected replicas. Pinned to 1, the declared sizes hold.
        "tablespace.default.replica.count": 1,
        "server.halt.on.tablespace.boot.error": "false",
        "herdkeeper.credentials.dir": "/credentials",
        "herdkeeper.http.port": names.HERDDB_HTTP_PORT,
        **_tls_lines(tls_of(cluster, log)),
        # HerdDB passes what follows `bookkeeper.` to its client
        "bookkeeper.speculativeReadTimeout": ASK_ANOTHER_BOOKIE_MILLIS,
        "bookkeeper.firstSpeculativeReadLACTimeout": ASK_ANOTHER_BOOKIE_MILLIS,
        **{f"bookkeeper.{key}": value for key, value in placement_lines(log.placement).items()},
        **({f"bookkeeper.{key}": value for key, value in bookkeeper_lines(FOLDER).items()} if log.asks_for_certificates else {}),
    }
    return pod.properties(lines, cluster.spec.config)


def _tls_lines(tls: Tls | None) -> dict[str, str]:
    """Sets `server.ssl` as well, so that a node program too old for the other lines does not serve plain text."""
    if tls is None:
        return {}
    return {"server.ssl": "true", "herdkeeper.tls.dir": TLS_MOUNT, "herdkeeper.tls.plaintext": tls.plaintext.lower()}


def refuses_plaintext(files: Mapping[str, str]) -> bool:
    """Returns whether SQL nodes with these files of their ConfigMap refuse plain text."""
    return "herdkeeper.tls.plaintext=refused" in files.get(PROPERTIES, "").splitlines()


def _tls_volume(tls: Tls) -> Json:
    """The certificate of a node. It does not need the authorities that clients trust."""
    keys = (names.CERTIFICATE_KEY, names.PRIVATE_KEY_KEY)
    items = [{"key": key, "path": key} for key in keys]
    return {"name": names.TLS_VOLUME, "secret": {"secretName": tls.secret_name, "defaultMode": 0o440, "items": items}}


def _stateful_set(cluster: HerdDBCluster, log: LogStore, secret: str, config: str, nodes: int | None) -> Json:
    """`secret` is the mounted one, `config` the hash of the configuration. `nodes` as in build_herddb()."""
    named, tls = cluster.names, tls_of(cluster, log)
    labels = names.labels(COMPONENT, cluster.KIND, cluster.metadata.name)
    identity = java_identity(named.identity_secret if log.asks_for_certificates else None, "HERDDB_JAVA_OPTS")
    selector = names.selector(COMPONENT, cluster.metadata.name)
    host = f"$(POD_NAME).{named.nodes_service}.{cluster.metadata.namespace}.svc"
    container = {
        "name": "herddb",
        "image": image_of(cluster),
        "args": [
            *("--config", f"/config/{PROPERTIES}", "--node-id", "$(POD_NAME)", "--advertised-host", host),
            *((CERTIFICATE_ARGUMENT, TLS_MOUNT) if tls else ()),
        ],
        "env": [pod.field("POD_NAME", "metadata.name"), *identity.variables, *pod.log_variables(cluster.spec.pods)],
        "ports": pod.metrics_port(names.HERDDB_HTTP_PORT),
        "resources": pod.compute(cluster.spec.resources),
        "readinessProbe": pod.http_probe("/readyz", names.HERDDB_HTTP_PORT, tls=tls is not None),
        "livenessProbe": {**pod.http_probe("/healthz", names.HERDDB_HTTP_PORT, 6, tls=tls is not None), "initialDelaySeconds": 120},
        "volumeMounts": [
            pod.CONFIG_MOUNT,
            MOUNT,
            {"name": "credentials", "mountPath": "/credentials", "readOnly": True},
            *([{"name": names.TLS_VOLUME, "mountPath": TLS_MOUNT, "readOnly": True}] if tls else []),
            {"name": "data", "mountPath": "/data"},
            *identity.mounts,
        ],
    }
    volumes = [
        pod.config_volume(named.config_map),
        racks_volume(log.placement.config_map),
        {"name": "credentials", "secret": {"secretName": secret, "defaultMode": 0o440}},
        *([_tls_volume(tls)] if tls else []),
        *identity.volumes,
    ]
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": pod.metadata(cluster, COMPONENT, named.stateful_set),
        "spec": {
            "replicas": cluster.spec.replicas if nodes is None else nodes,
            "serviceName": named.nodes_service,
            "podManagementPolicy": "Parallel",
            # The operator restarts the nodes itself (herddb/plan/restart.py): followers first, leaders after their leaderships moved.
            "updateStrategy": {"type": "OnDelete"},
            "persistentVolumeClaimRetentionPolicy": pod.KEPT_CLAIMS,
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": pod.template_metadata(
                    labels, {names.CONFIG_ANNOTATION: config, **({names.SCHEME_ANNOTATION: "https"} if tls else {})}, cluster.spec.pods
                ),
                "spec": {**pod.pod_spec(cluster, container, volumes, 60), **pod.placed(selector, cluster.spec.pods)},
            },
            "volumeClaimTemplates": [{"metadata": {"name": "data", "labels": labels}, "spec": pod.claim_spec(cluster.spec.storage)}],
        },
    }
