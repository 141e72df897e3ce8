"""Where the HTTP port of a SQL node is, and how the node is verified there."""

from __future__ import annotations

from dataclasses import dataclass

from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from herdkeeper.clients.bounded_http import Trust
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.kubernetes import KubernetesReader
from herdkeeper.herddb.state.tls import http_secret
from herdkeeper.shared import names
from herdkeeper.shared.names import HerdDBNames, ObjectKey
from herdkeeper.shared.objects import Json, Objects, ip_address
from herdkeeper.shared.unknown import Unknown


@dataclass(frozen=True)
class NodePort:
    """A SQL node's HTTP port as its pod declares it. `host` is the pod's IP as written in a URL, or `name` if that is unknown. `secret` has
    the authorities that verify the node as `name`, and is None in plain text.
    """

    host: str
    name: str
    secret: ObjectKey | None


@dataclass(frozen=True)
class NodeAddress:
    """How a port is reached: `trust` has its authorities, and is None in plain text."""

    host: str
    trust: Trust | None

    def url(self, path: str) -> str:
        return f"{'http' if self.trust is None else 'https'}://{self.host}:{names.HERDDB_HTTP_PORT}{path}"


def port_of_pod(named: HerdDBNames, pod: Json) -> NodePort:
    """Returns the port of a pod that the StatefulSet made. Not by its name: after a restart DNS may tell the old address, or hang."""
    name, secret = named.host_of(pod["metadata"]["name"]), http_secret(pod)
    return NodePort(ip_address(pod) or name, name, None if secret is None else ObjectKey(named.key.namespace, secret))


def with_authorities(port: NodePort, kubernetes: KubernetesReader) -> NodeAddress | Unknown:
    """Returns how a port is reached. Unknown if it speaks TLS and its authorities can't be read: then it is sent nothing."""
    if port.secret is None:
        return NodeAddress(port.host, None)
    if not port.secret.name:
        return Unknown(f"the pod of {port.name} has an HTTP port that speaks TLS, but mounts no Secret with a certificate")
    what = f"the Secret {port.secret.name}, by which the HTTP port of {port.name} is verified,"
    try:
        values = kubernetes.recent_secret(port.secret) or {}
    except (ApiException, HTTPError) as error:
        return Unknown(f"{what} can't be read: {error.reason if isinstance(error, ApiException) else error}")
    authorities = values.get(names.AUTHORITIES_KEY)
    return NodeAddress(port.host, Trust(authorities, port.name)) if authorities else Unknown(f"{what} has no {names.AUTHORITIES_KEY}")


def port_of_node(named: HerdDBNames, objects: Objects, node: str) -> NodePort | Unknown:
    """Returns a node's port. Unknown if the StatefulSet did not make the pod: it may be anybody's, and an order carries the token."""
    pod = objects.pod_of(named.stateful_set, node)
    if pod is None:
        return Unknown(f"there is no pod {node} that the StatefulSet {named.stateful_set} made")
    return port_of_pod(named, pod)


def address_of(database: ObjectKey, node: str, reader: ClusterReader) -> NodeAddress | Unknown:
    """Returns the address of a node of the HerdDBCluster `database`, from its live pod."""
    named = HerdDBNames(database)
    asked = (("v1", "Pod", node), ("apps/v1", "StatefulSet", named.stateful_set))
    found = {(kind, name): reader.kubernetes.document(version, kind, ObjectKey(database.namespace, name)) for version, kind, name in asked}
    port = port_of_node(named, Objects({of: item for of, item in found.items() if item is not None}), node)
    return port if isinstance(port, Unknown) else with_authorities(port, reader.kubernetes)
