"""How the ports of SQL nodes are encrypted, the observation of the Secret with their certificate, and when a password may be sent."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from herdkeeper.api import HerdDBCluster
from herdkeeper.api.herddb_cluster import Tls
from herdkeeper.herddb.state.log_store import LogStore
from herdkeeper.planning.actions import Wait
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason

CERTIFICATE_ARGUMENT = "--http-certificate"
"""The node program's argument before the folder with the certificate of its HTTP port. Without it the port is in plain text."""


@dataclass(frozen=True)
class TlsUsable:
    """SQL nodes can use the Secret until its certificate expires. `authorities` (its `ca.crt`, PEM certificates) verify them."""

    secret: str
    authorities: str
    expires: datetime.datetime | None = field(default=None, compare=False)


def tls_of(cluster: HerdDBCluster, log: LogStore) -> Tls | None:
    """Returns what is declared, or follows from the stack: where servers refuse plain text, SQL nodes do so with their own certificate."""
    if cluster.spec.tls is None and log.asks_for_certificates and not log.plaintext:
        return Tls(secret_name=cluster.names.identity_secret)
    return cluster.spec.tls


def serves_tls(pod: Json) -> bool:
    """Returns whether a SQL node with this pod, or pod template, has a certificate for its SQL port."""
    return any(volume["name"] == names.TLS_VOLUME for volume in pod.get("spec", {}).get("volumes", []))


def http_secret(pod: Json) -> str | None:
    """Returns the Secret with the certificate of a SQL node's HTTP port, None if the port is in plain text. It is empty if the pod, unlike
    those that the operator makes, mounts no such Secret.

    This goes by the argument that makes the port speak TLS: it can't change while the pod exists. The pod's probes would not do, since a
    mesh that injects itself rewrites them.
    """
    spec = pod.get("spec") or {}
    arguments = [each for container in spec.get("containers") or [] for each in container.get("args") or []]
    if CERTIFICATE_ARGUMENT not in arguments:
        return None
    secrets = (volume["secret"]["secretName"] for volume in spec.get("volumes") or [] if volume["name"] == names.TLS_VOLUME)
    return next(secrets, "")


def is_encrypted(herddb: HerdDBCluster | None) -> bool:
    """Returns whether every SQL node serves TLS, by the resource."""
    return herddb is not None and herddb.status is not None and herddb.status.encrypted is True


def why_no_login(tls: TlsUsable | Problem | None, herddb: HerdDBCluster | None) -> Wait | None:
    """Returns what a login must wait for, or None. `tls` is the verdict on the Secret of the SQL port, None if it is not encrypted."""
    if isinstance(tls, Problem):
        return Wait(tls.reason, tls.why)
    if (tls is not None) is not is_encrypted(herddb):
        which = "with" if tls is not None else "without"
        return Wait(Reason.WAITING_FOR_HERDDB, f"not all SQL nodes serve {which} TLS yet: they are restarted one by one")
    return None
