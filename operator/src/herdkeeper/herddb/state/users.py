"""The users that may log in: the administrator, and those of `spec.users` with valid Secrets.

An unreadable or invalid Secret revokes no login: its last user stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from herdkeeper.api import HerdDBCluster
from herdkeeper.codecs.herddb.users import SqlUser, decode_users
from herdkeeper.herddb.state.cluster import UserCredentials
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason


@dataclass(frozen=True)
class SqlUsers:
    """The users that may log in, the administrator first, and the problems with others."""

    users: tuple[SqlUser, ...]
    problems: tuple[Problem, ...] = ()


def users_of(
    cluster: HerdDBCluster,
    administrator: UserCredentials,
    found: Mapping[str, UserCredentials | Problem],
    stored: str,
) -> SqlUsers:
    """`found` are the contents of the Secrets of `spec.users`, by name; `stored` is the users file in force, "" before there is one."""
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
    """Returns which user has which name. A name stays with its holder until that gets another one: an edited Secret revokes no other user's
    login. A free name goes to the first that declares it.
    """
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


def _problem(field: str, secret: str, found: UserCredentials | Problem | None, accepted: Mapping[str, SqlUser]) -> Problem | None:
    match found:
        case None:
            return Problem(Reason.WAITING_FOR_SECRET, f"{field}: that Secret has not been read yet")
        case Problem(reason, why):
            return Problem(reason, f"{field}: {why}")
        case UserCredentials(username):
            holder = accepted[username]
            if holder.secret == secret:
                return None
            whose = "the administrator" if holder.secret is None else f"the user of the Secret {holder.secret}"
            return Problem(Reason.INVALID_SECRET, f"{field}: its username {username} belongs to {whose}; set another username")


def _ordered(declared: list[str], accepted: Mapping[str, SqlUser]) -> tuple[SqlUser, ...]:
    """In declared order, whatever was read first: another order would be another file."""
    return tuple(sorted(accepted.values(), key=lambda user: -1 if user.secret is None else declared.index(user.secret)))


def _with_kept_user(problem: Problem, staying: str | None) -> Problem:
    if staying is None:
        return problem
    return Problem(problem.reason, f"{problem.why} ({staying} stays as it was)")
