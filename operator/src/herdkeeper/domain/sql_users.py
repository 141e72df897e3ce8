"""Who shall be able to log in: the administrator, and the users of `spec.users` as far as their Secrets say who they are.

A Secret that can't be read, or says what can't be, takes nobody's login away: the user that it named last stays as he was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from herdkeeper.api import HerdDBCluster
from herdkeeper.domain.observed.herddb import CredentialsMissing, UserCredentials
from herdkeeper.domain.reason import Reason
from herdkeeper.formats.herddb_users import SqlUser, decode_users


@dataclass(frozen=True)
class Problem:
    """Why a declared user is not in force as his Secret says; the message names field, value and fix."""

    reason: Reason
    why: str


@dataclass(frozen=True)
class SqlUsers:
    """All that may log in, the administrator first, and what is in the way of others."""

    users: tuple[SqlUser, ...]
    problems: tuple[Problem, ...] = ()


def users_of(
    cluster: HerdDBCluster,
    administrator: UserCredentials,
    found: Mapping[str, UserCredentials | CredentialsMissing],
    stored: str,
) -> SqlUsers:
    """`found` is what the Secrets of `spec.users` hold, by their names, and `stored` the users file that is in force, "" before there is
    one."""
    declared = [user.secret_name for user in cluster.spec.users]
    accepted = {administrator.username: SqlUser(administrator.username, administrator.password)}
    problems: dict[str, Problem] = {}
    for position, secret in enumerate(declared):
        match _judged(f"spec.users[{position}].secretName is {secret}", secret, found.get(secret), accepted):
            case Problem() as problem:
                problems[secret] = problem
            case SqlUser() as user:
                accepted[user.username] = user
    before = {user.secret: user for user in decode_users(stored) if user.secret is not None}
    kept = [before[secret] for secret in problems if secret in before and before[secret].username not in accepted]
    accepted |= {user.username: user for user in kept}
    staying = {user.secret: user.username for user in kept}
    return SqlUsers(_ordered(declared, accepted), tuple(_told(problem, staying.get(secret)) for secret, problem in problems.items()))


def _judged(
    field: str, secret: str, found: UserCredentials | CredentialsMissing | None, accepted: Mapping[str, SqlUser]
) -> SqlUser | Problem:
    match found:
        case None:
            return Problem(Reason.WAITING_FOR_SECRET, f"{field}: that Secret has not been looked at yet")
        case CredentialsMissing(reason, why):
            return Problem(reason, f"{field}: {why}")
        case UserCredentials(username, password):
            taken = accepted.get(username)
            if taken is None:
                return SqlUser(username, password, secret)
            whose = "the administrator" if taken.secret is None else f"the user of the Secret {taken.secret}"
            return Problem(Reason.INVALID_SECRET, f"{field}: its username {username} is that of {whose}; give it another username")


def _ordered(declared: list[str], accepted: Mapping[str, SqlUser]) -> tuple[SqlUser, ...]:
    """As declared, whatever was looked at first: another order would be another file."""
    return tuple(sorted(accepted.values(), key=lambda user: -1 if user.secret is None else declared.index(user.secret)))


def _told(problem: Problem, staying: str | None) -> Problem:
    if staying is None:
        return problem
    return Problem(problem.reason, f"{problem.why} ({staying} stays as it was)")
