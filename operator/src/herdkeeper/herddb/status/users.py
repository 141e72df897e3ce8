"""The condition UsersInForce: whether every SQL node lets in whom the Secrets name, and nobody else. See herddb/state/users.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from herdkeeper.api import HerdDBCluster
from herdkeeper.codecs.herddb.users import decode_users, revision_of
from herdkeeper.herddb.state.cluster import HerdDBObserved, UserCredentials, users_file
from herdkeeper.herddb.state.nodes import mounted_secret, present_nodes
from herdkeeper.herddb.state.users import SqlUsers, users_of
from herdkeeper.planning.summary import Health
from herdkeeper.shared.conditions import USERS_IN_FORCE
from herdkeeper.shared.reason import Reason


def users_in_force(cluster: HerdDBCluster, seen: HerdDBObserved) -> tuple[Mapping[str, Health], Mapping[str, Any]]:
    """The condition, by its type, and the status fields; nothing new of either before there are credentials and a users file."""
    before = cluster.status
    known = {"users": list(before.users), "usersRevision": before.users_revision} if before is not None else {}
    file = users_file(seen.objects, mounted_secret(cluster))
    if not isinstance(seen.credentials, UserCredentials) or not file:
        return {}, known
    wanted = users_of(cluster, seen.credentials, seen.users, file)
    revision = revision_of(file)
    late = list(_late(cluster, seen, wanted, file))
    fields = known if late else {"users": [user.username for user in decode_users(file)], "usersRevision": revision}
    return {USERS_IN_FORCE: _health(wanted, late)}, fields


def _health(wanted: SqlUsers, late: list[tuple[Reason, str]]) -> Health:
    # what a person has to do is not mixed with what comes by itself
    told = [(problem.reason, problem.why) for problem in wanted.problems] or late
    if told:
        return Health("False", told[0][0], "; ".join(why for _, why in told))
    return Health("True", Reason.USERS_IN_FORCE, f"every SQL node lets in {', '.join(user.username for user in wanted.users)}")


def _late(cluster: HerdDBCluster, seen: HerdDBObserved, wanted: SqlUsers, file: str) -> Iterator[tuple[Reason, str]]:
    """What is missing until the nodes let in whom they shall. What was in force once is so for good: a process that starts reads the file
    as it is then, so a node that says nothing just now, since the operator has just begun to listen, tells nothing else."""
    if decode_users(file) != wanted.users:
        yield Reason.USERS_CHANGING, "the users file is being updated"
        return
    revision = revision_of(file)
    was_in_force = cluster.status is not None and revision is not None and cluster.status.users_revision == revision
    for node in present_nodes(cluster, seen.objects):
        report = seen.reports.get(node)
        if report is None:
            # one that is not Ready and says nothing takes them up before it serves
            if seen.objects.pod_ready(node) and not was_in_force:
                yield Reason.USERS_CHANGING, f"{node} has not reported yet which users may log in"
        elif report.users is None:
            yield Reason.IMAGE_TOO_OLD, f"{node} reads its users only when it starts: change spec.image to one of this version"
        elif report.users.revision != revision:
            why = f" ({report.users.refused})" if report.users.refused is not None else ""
            yield Reason.USERS_CHANGING, f"{node} has not taken them up yet{why}"
