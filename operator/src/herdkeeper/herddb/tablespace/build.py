"""Builds a Tablespace's objects for clients: a Service that follows its leader, and a Secret."""

from __future__ import annotations

from herdkeeper.api import HerdDBCluster, Tablespace
from herdkeeper.herddb.state.cluster import UserCredentials
from herdkeeper.planning import pods as pod
from herdkeeper.planning.identities import secret_of
from herdkeeper.shared import names
from herdkeeper.shared.names import HerdDBNames, ObjectKey
from herdkeeper.shared.objects import Json

COMPONENT = names.HERDDB_COMPONENT


def build_leader_service(tablespace: Tablespace, leader: str) -> Json:
    """Returns the Service of the pod `leader`. It is deleted with the Tablespace; its labels name the HerdDBCluster, whose key keeps it up
    to date.

    It selects by the pod's name, a label that Kubernetes sets, so a new leader is one write, without addresses. It selects unready pods,
    too: a node is not Ready while any tablespace is unsettled, but still serves this one.
    """
    database = tablespace.spec.herd_db_ref.name
    metadata = pod.metadata(tablespace, COMPONENT, tablespace.names.leader_service)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**metadata, "labels": names.labels(COMPONENT, HerdDBCluster.KIND, database)},
        "spec": {
            "publishNotReadyAddresses": True,
            "selector": {**names.selector(COMPONENT, database), names.POD_NAME_LABEL: leader},
            "ports": [{"name": "sql", "port": names.HERDDB_SQL_PORT, "targetPort": names.HERDDB_SQL_PORT}],
        },
    }


def build_connection_secret(
    tablespace: Tablespace, zookeeper_address: str, credentials: UserCredentials, authorities: str | None = None
) -> Json:
    """Returns the Secret with all that a client needs. It is deleted with the Tablespace: its content exists elsewhere. `zookeeper_address`
    is `host:port,…`; `authorities` are the certificates (PEM) that verify the SQL nodes, None unless all serve TLS.
    """
    named = tablespace.names
    database = HerdDBNames(ObjectKey(tablespace.metadata.namespace, tablespace.spec.herd_db_ref.name))
    values = {
        names.CONNECTION_HOST_KEY: named.leader_host,
        names.CONNECTION_PORT_KEY: str(names.HERDDB_SQL_PORT),
        names.CONNECTION_URL_KEY: database.jdbc_url(zookeeper_address),
        names.CONNECTION_LEADER_URL_KEY: named.leader_jdbc_url(encrypted=authorities is not None),
        names.CONNECTION_USER_KEY: credentials.username,
        names.PASSWORD_KEY: credentials.password,
        names.CONNECTION_DATABASE_KEY: tablespace.sql_name,
        **({names.AUTHORITIES_KEY: authorities} if authorities is not None else {}),
    }
    return secret_of(pod.metadata(tablespace, COMPONENT, named.connection_secret), values)
