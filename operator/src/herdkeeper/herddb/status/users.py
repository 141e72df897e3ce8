"""The condition UsersInForce: whether every SQL node accepts exactly the users that the Secrets name. See herddb/state/users.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from herdkeeper.codecs.herddb.users import decode_users, revision_of
from herdkeeper.herddb.plan.users import why_not_in_force
from herdkeeper.herddb.state.cluster import CredentialsMissing
from herdkeeper.herddb.state.fleet import SqlFleet
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
    late = why_not_in_force(fleet, wanted.users)
    fields = known if late else {"users": [user.username for user in decode_users(file)], "usersRevision": revision_of(file)}
    # problems that need a person are not mixed with what resolves itself
    if told := wanted.problems or late:
        return {USERS_IN_FORCE: Health("False", told[0].reason, "; ".join(each.why for each in told))}, fields
    everybody = f"every SQL node accepts {', '.join(user.username for user in wanted.users)}"
    return {USERS_IN_FORCE: Health("True", Reason.USERS_IN_FORCE, everybody)}, fields
