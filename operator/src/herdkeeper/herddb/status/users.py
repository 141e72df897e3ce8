"""The condition UsersInForce: whether every SQL node accepts exactly the users that the Secrets name. See herddb/state/users.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from herdkeeper.codecs.herddb.users import decode_users, revision_of
from herdkeeper.herddb.state.cluster import CredentialsMissing
from herdkeeper.herddb.state.fleet import SqlFleet
from herdkeeper.herddb.state.users import SqlUsers
from herdkeeper.planning.summary import Health
from herdkeeper.shared.conditions import USERS_IN_FORCE
from herdkeeper.shared.reason import Reason


def users_in_force(fleet: SqlFleet) -> tuple[Mapping[str, Health], Mapping[str, Any]]:
    """Returns the condition, by its type, and the status fields. No new ones before there are credentials and a users file."""
    before = fleet.cluster.status
    known = {"users": list(before.users), "usersRevision": before.users_revision} if before is not None else {}
    file, wanted = fleet.users_file, fleet.sql_users
    if fleet.credentials is None or isinstance(wanted, CredentialsMissing) or not file:
        return {}, known
    revision = revision_of(file)
    late = list(_late(fleet, wanted, file))
    fields = known if late else {"users": [user.username for user in decode_users(file)], "usersRevision": revision}
    return {USERS_IN_FORCE: _health(wanted, late)}, fields


def _health(wanted: SqlUsers, late: list[tuple[Reason, str]]) -> Health:
    # problems that need a person are not mixed with what resolves itself
    told = [(problem.reason, problem.why) for problem in wanted.problems] or late
    if told:
        return Health("False", told[0][0], "; ".join(why for _, why in told))
    return Health("True", Reason.USERS_IN_FORCE, f"every SQL node accepts {', '.join(user.username for user in wanted.users)}")


def _late(fleet: SqlFleet, wanted: SqlUsers, file: str) -> Iterator[tuple[Reason, str]]:
    """Yields what is missing until all nodes accept the right users.

    Users in force stay so: a starting process reads the current file. Silence of a node, e.g. because the operator just started to listen,
    changes nothing.
    """
    if decode_users(file) != wanted.users:
        yield Reason.USERS_CHANGING, "the users file is being updated"
        return
    revision = revision_of(file)
    was_in_force = fleet.cluster.status is not None and revision is not None and fleet.cluster.status.users_revision == revision
    for node in fleet.present:
        report = fleet.reports.get(node)
        if report is None:
            # one that is not Ready and silent loads them before it serves
            if fleet.objects.pod_ready(node) and not was_in_force:
                yield Reason.USERS_CHANGING, f"{node} has not reported yet which users may log in"
        elif report.users is None:
            yield Reason.IMAGE_TOO_OLD, f"{node} reads its users only at start: set spec.image to an image of this version"
        elif report.users.revision != revision:
            why = f" ({report.users.refused})" if report.users.refused is not None else ""
            yield Reason.USERS_CHANGING, f"{node} has not loaded them yet{why}"
