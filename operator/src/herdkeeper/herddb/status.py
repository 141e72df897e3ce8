"""Derives the status of a HerdDB cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from herdkeeper.codecs.herddb.users import decode_users, revision_of
from herdkeeper.herddb.build import refuses_plaintext
from herdkeeper.herddb.plan.users import why_not_in_force
from herdkeeper.herddb.state.fleet import SqlFleet
from herdkeeper.herddb.state.tls import TlsUsable, tls_of
from herdkeeper.planning.lost_node import nodes_reachable
from herdkeeper.planning.rolling import outdated_pods
from herdkeeper.planning.summary import Health, Summary
from herdkeeper.shared.conditions import ENCRYPTED, USERS_IN_FORCE, condition
from herdkeeper.shared.counted import counted
from herdkeeper.shared.lost_node import trouble_of
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import text_of
from herdkeeper.shared.unknown import Unknown

MEANWHILE = "Its leaderships go to followers on other nodes. Restarts wait."


def summarize_herddb(fleet: SqlFleet) -> Summary:
    """Returns Ready if each SQL node passes its readiness probe (its tablespaces are settled) and ledgers can be opened."""
    named, pods = fleet.named, fleet.staying
    ready = [pod for pod in pods if fleet.objects.pod_ready(pod)]
    log = fleet.log
    reference = fleet.cluster.spec.credentials_secret_ref
    tablespaces = {entry.name for view in fleet.nodes.values() if not isinstance(view, Unknown) for entry in view}
    conditions, users = _users_in_force(fleet)
    fields = {
        "nodes": len(fleet.present),
        "readyNodes": len(ready),
        "herdRoot": named.herd_root,
        "sqlAddress": named.sql_address,
        "jdbcUrl": named.jdbc_url(log.applications_address) if log else None,
        "credentialsSecret": reference.name if reference else named.generated_secret,
        **users,
        "encrypted": fleet.encrypted or None,
        "certificateExpires": text_of(fleet.tls.expires) if isinstance(fleet.tls, TlsUsable) and fleet.tls.expires else None,
        "tablespaces": sorted(tablespaces) or None,
    }
    hanging = nodes_reachable(fleet.objects, fleet.present, fleet.machines, MEANWHILE)
    conditions = {**conditions, **_encrypted(fleet), **hanging}
    if len(ready) < len(pods):
        shown = "; ".join(f"{pod}: {trouble_of(fleet.objects.get('Pod', pod), fleet.machines)}" for pod in pods if pod not in ready)
        message = f"{len(ready)} of {counted(len(pods), 'SQL node serves', 'SQL nodes serve')} ({shown})"
        return Summary(Health("False", Reason.NODES_NOT_READY, message), fields, conditions)
    no_ledger = fleet.why_no_ledger_can_open
    if isinstance(no_ledger, str):
        message = f"{counted(len(ready), 'SQL node serves', 'SQL nodes serve')} only reads, since no ledger can be opened: {no_ledger}"
        return Summary(Health("False", Reason.WAITING_FOR_BOOKKEEPER, message), fields, conditions)
    return Summary(Health("True", Reason.READY, f"{counted(len(ready), 'SQL node serves', 'SQL nodes serve')}"), fields, conditions)


def _encrypted(fleet: SqlFleet) -> dict[str, Health]:
    """Returns the condition Encrypted by its type. Nothing if SQL nodes refuse plain text, or have no certificate."""
    tls = fleet.cluster.spec.tls if fleet.log is None else tls_of(fleet.cluster, fleet.log)
    if tls is None or (tls.plaintext == "Refused" and not (condition(fleet.cluster, ENCRYPTED) and _has_open_nodes(fleet))):
        return {}
    message = "plain text is accepted at the SQL port, beside TLS: clients that use it show passwords and rows to the network"
    restart = "" if tls.plaintext == "Accepted" else ", until all nodes have restarted"
    return {ENCRYPTED: Health("False", Reason.PLAINTEXT_ACCEPTED, f"{message}{restart}")}


def _has_open_nodes(fleet: SqlFleet) -> bool:
    """Whether a node may have started before plain text was refused."""
    objects, nodes = fleet.objects, fleet.named.stateful_set
    refused = refuses_plaintext(objects.data("ConfigMap", fleet.named.config_map)) and objects.revision(nodes)
    return not refused or bool(outdated_pods(nodes, objects, fleet.present))


def _users_in_force(fleet: SqlFleet) -> tuple[Mapping[str, Health], Mapping[str, Any]]:
    """Returns the condition UsersInForce, by its type, and the status fields. No new ones before there are credentials and a users file."""
    before = fleet.cluster.status
    known = {"users": list(before.users), "usersRevision": before.users_revision} if before is not None else {}
    file, wanted = fleet.users_file, fleet.sql_users
    if fleet.credentials is None or isinstance(wanted, Problem) or not file:
        return {}, known
    late = why_not_in_force(fleet, wanted.users)
    fields = known if late else {"users": [user.username for user in decode_users(file)], "usersRevision": revision_of(file)}
    # problems that need a person are not mixed with what resolves itself
    if told := wanted.problems or late:
        return {USERS_IN_FORCE: Health("False", told[0].reason, "; ".join(each.why for each in told))}, fields
    everybody = f"every SQL node accepts {', '.join(user.username for user in wanted.users)}"
    return {USERS_IN_FORCE: Health("True", Reason.USERS_IN_FORCE, everybody)}, fields
