"""The users that may log in: the administrator, and those of `spec.users` whose Secrets are valid.

A Secret that can't be read, or says what can't be, takes nobody's login away: the user that it named last stays as he was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from herdkeeper.api import HerdDBCluster
from herdkeeper.codecs.herddb.users import SqlUser, decode_users
from herdkeeper.herddb.state.cluster import CredentialsMissing, UserCredentials
from herdkeeper.shared.reason import Reason


@dataclass(frozen=True)
class Problem:
    """Why a declared user differs from its Secret; the message names field, value and fix."""

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
    wanted = [
        SqlUser(login.username, login.password, secret) for secret in declared if isinstance(login := found.get(secret), UserCredentials)
    ]
    before = [user for user in decode_users(stored) if user.secret in declared and user.username != administrator.username]
    accepted = _accepted(SqlUser(administrator.username, administrator.password), wanted, before)
    staying = {user.secret: user.username for user in accepted.values()}
    problems = (
        (secret, _problem(f"spec.users[{position}].secretName is {secret}", secret, found.get(secret), accepted))
        for position, secret in enumerate(declared)
    )
    told = tuple(_with_kept_user(problem, staying.get(secret)) for secret, problem in problems if problem is not None)
    return SqlUsers(_ordered(declared, accepted), told)


def _accepted(administrator: SqlUser, wanted: Sequence[SqlUser], before: Sequence[SqlUser]) -> dict[str, SqlUser]:
    """Who has which name. A name is its holder's until that one has got another: an edited Secret takes no other user's login away. Of
    several that want a free one it is the first's, as declared."""
    accepted = {user.username: user for user in (*before, administrator)}
    waiting = []
    for user in wanted:
        holder = accepted.get(user.username)
        if holder is not None and holder.secret == user.secret:
            accepted[user.username] = user
        else:
            waiting.append(user)
    while (next_one := next((user for user in waiting if user.username not in accepted), None)) is not None:
        waiting.remove(next_one)
        accepted = {name: user for name, user in accepted.items() if user.secret != next_one.secret}
        accepted[next_one.username] = next_one
    return accepted


def _problem(
    field: str, secret: str, found: UserCredentials | CredentialsMissing | None, accepted: Mapping[str, SqlUser]
) -> Problem | None:
    match found:
        case None:
            return Problem(Reason.WAITING_FOR_SECRET, f"{field}: that Secret has not been read yet")
        case CredentialsMissing(reason, why):
            return Problem(reason, f"{field}: {why}")
        case UserCredentials(username):
            holder = accepted[username]
            if holder.secret == secret:
                return None
            whose = "the administrator" if holder.secret is None else f"the user of the Secret {holder.secret}"
            return Problem(Reason.INVALID_SECRET, f"{field}: its username {username} belongs to {whose}; set another username")


def _ordered(declared: list[str], accepted: Mapping[str, SqlUser]) -> tuple[SqlUser, ...]:
    """As declared, whatever was looked at first: another order would be another file."""
    return tuple(sorted(accepted.values(), key=lambda user: -1 if user.secret is None else declared.index(user.secret)))


def _with_kept_user(problem: Problem, staying: str | None) -> Problem:
    if staying is None:
        return problem
    return Problem(problem.reason, f"{problem.why} ({staying} stays as it was)")
