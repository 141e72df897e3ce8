"""Reads who may log in to SQL nodes, and the token of their HTTP port, from Secrets."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from herdkeeper.api import HerdDBCluster
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.codecs.herddb.users import FIT, FIT_FOR_ADMINISTRATOR, invalid_part, invalid_part_of_administrator
from herdkeeper.herddb.state.cluster import UserCredentials
from herdkeeper.herddb.state.nodes import mounted_secret
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

_MOST_READERS = 8


def read_credentials(cluster: HerdDBCluster, reader: ClusterReader) -> UserCredentials | Problem | None:
    """Returns the administrator's credentials. None if they are yet to be generated."""
    reference = cluster.spec.credentials_secret_ref
    name = reference.name if reference else cluster.names.generated_secret
    values = reader.kubernetes.secret(ObjectKey(cluster.metadata.namespace, name))
    if values is None:
        return Problem(Reason.WAITING_FOR_SECRET, f"the Secret {name} does not exist") if reference else None
    login = _login_of(name, values)
    if isinstance(login, UserCredentials) and (part := invalid_part_of_administrator(login.username, login.password)) is not None:
        return _unfit(Reason.INVALID_SPEC, name, part, FIT_FOR_ADMINISTRATOR)
    return login


def read_users(cluster: HerdDBCluster, reader: ClusterReader) -> dict[str, UserCredentials | Problem]:
    """Returns the contents of the Secrets of `spec.users`, by name."""
    keys = [ObjectKey(cluster.metadata.namespace, user.secret_name) for user in cluster.spec.users]
    if not keys:
        return {}
    # all concurrently: a lost leader is replaced only after this observation
    with ThreadPoolExecutor(max_workers=min(_MOST_READERS, len(keys))) as readers:
        values = dict(zip((key.name for key in keys), readers.map(reader.kubernetes.secret, keys), strict=True))
    missing = Problem(Reason.WAITING_FOR_SECRET, f"the Secret does not exist; create it with {names.USERNAME_KEY} and {names.PASSWORD_KEY}")
    return {name: missing if held is None else _user_of(name, held) for name, held in values.items()}


def _user_of(name: str, values: Mapping[str, str]) -> UserCredentials | Problem:
    login = _login_of(name, values)
    if isinstance(login, UserCredentials) and (part := invalid_part(login.username, login.password)) is not None:
        return _unfit(Reason.INVALID_SECRET, name, part, FIT)
    return login


def _unfit(reason: Reason, name: str, part: str, fix: str) -> Problem:
    return Problem(reason, f"the Secret {name} has a {part} that HerdDB's users file can't hold: {fix}")


def _login_of(name: str, values: Mapping[str, str]) -> UserCredentials | Problem:
    missing = [entry for entry in (names.USERNAME_KEY, names.PASSWORD_KEY) if not values.get(entry)]
    if missing:
        return Problem(Reason.WAITING_FOR_SECRET, f"the Secret {name} lacks {' and '.join(missing)}: add it")
    return UserCredentials(values[names.USERNAME_KEY], values[names.PASSWORD_KEY])


def read_token(cluster: HerdDBCluster, reader: ClusterReader) -> str | Unknown:
    """Returns the token for the nodes' HTTP port."""
    secret = mounted_secret(cluster)
    values = reader.kubernetes.secret(ObjectKey(cluster.metadata.namespace, secret))
    token = (values or {}).get(names.TOKEN_KEY)
    return token or Unknown(f"the Secret {secret} has no {names.TOKEN_KEY} yet")
