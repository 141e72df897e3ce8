"""Derives the status of a HerdDB cluster."""

from __future__ import annotations

from herdkeeper.api import HerdDBCluster
from herdkeeper.herddb.leadership.plan import why_no_ledger_can_open
from herdkeeper.herddb.state.cluster import HerdDBObserved
from herdkeeper.herddb.state.log_store import log_store
from herdkeeper.herddb.state.nodes import present_nodes, staying_nodes
from herdkeeper.herddb.state.tls import TlsUsable
from herdkeeper.herddb.status.users import users_in_force
from herdkeeper.planning.lost_node import nodes_reachable
from herdkeeper.planning.summary import Health, Summary
from herdkeeper.shared import names
from herdkeeper.shared.lost_node import trouble_of
from herdkeeper.shared.objects import Json, Objects
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import text_of
from herdkeeper.shared.unknown import Unknown

MEANWHILE = "Its leaderships go to followers on other nodes. Restarts wait."


def summarize_herddb(cluster: HerdDBCluster, seen: HerdDBObserved) -> Summary:
    """Returns Ready if each SQL node passes its readiness probe (its tablespaces are settled) and ledgers can be opened."""
    named, pods = cluster.names, staying_nodes(cluster)
    ready = [pod for pod in pods if seen.objects.pod_ready(pod)]
    log = log_store(seen.bookkeeper)
    reference = cluster.spec.credentials_secret_ref
    tablespaces = {entry.name for view in seen.nodes.values() if not isinstance(view, Unknown) for entry in view}
    conditions, users = users_in_force(cluster, seen)
    fields = {
        "nodes": len(present_nodes(cluster, seen.objects)),
        "readyNodes": len(ready),
        "herdRoot": named.herd_root,
        "sqlAddress": named.sql_address,
        "jdbcUrl": named.jdbc_url(log.applications_address) if log else None,
        "credentialsSecret": reference.name if reference else named.generated_secret,
        **users,
        "encrypted": _encrypted(cluster, seen.objects),
        "certificateExpires": text_of(seen.tls.expires) if isinstance(seen.tls, TlsUsable) and seen.tls.expires else None,
        "tablespaces": sorted(tablespaces) or None,
    }
    hanging = nodes_reachable(seen.objects, present_nodes(cluster, seen.objects), seen.machines, MEANWHILE)
    conditions = {**conditions, **hanging}
    if len(ready) < len(pods):
        shown = "; ".join(f"{pod}: {trouble_of(seen.objects.get('Pod', pod), seen.machines)}" for pod in pods if pod not in ready)
        return Summary(
            Health("False", Reason.NODES_NOT_READY, f"{len(ready)} of {len(pods)} SQL nodes serve ({shown})"), fields, conditions
        )
    no_ledger = why_no_ledger_can_open(cluster, seen.bookkeeper)
    if isinstance(no_ledger, str):
        message = f"{len(ready)} SQL nodes serve only reads, since no ledger can be opened: {no_ledger}"
        return Summary(Health("False", Reason.WAITING_FOR_BOOKKEEPER, message), fields, conditions)
    return Summary(Health("True", Reason.READY, f"{len(ready)} SQL nodes serve"), fields, conditions)


def _encrypted(cluster: HerdDBCluster, objects: Objects) -> bool | None:
    """By the pods themselves: a declaration takes effect when a pod is recreated. A missing pod comes back as the StatefulSet says."""
    stateful_set = objects.get("StatefulSet", cluster.names.stateful_set)
    if stateful_set is None:
        return None
    pods = [pod for node in present_nodes(cluster, objects) if (pod := objects.get("Pod", node)) is not None]
    return True if all(map(_serves_tls, (stateful_set["spec"]["template"], *pods))) else None


def _serves_tls(pod: Json) -> bool:
    return any(volume["name"] == names.TLS_VOLUME for volume in pod.get("spec", {}).get("volumes", []))
