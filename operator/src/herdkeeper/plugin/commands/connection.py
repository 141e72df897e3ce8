"""`kubectl herdkeeper connection`: what a client needs to connect to a tablespace."""

from __future__ import annotations

import base64

from herdkeeper.plugin.cluster import ClusterError
from herdkeeper.plugin.command import Answer, Argument, Call, Command, Takes
from herdkeeper.plugin.kinds import SECRET, TABLESPACE
from herdkeeper.plugin.lookup import find
from herdkeeper.plugin.stack_tree import troubles
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json

HIDDEN = "(hidden: --show-password)"
LONG = (names.AUTHORITIES_KEY,)
"""Entries of many lines: text for people only tells that they are there."""


def run(call: Call) -> Answer:
    """The entries of the connection Secret, without the password unless it is asked for."""
    tablespace = find(call.cluster, TABLESPACE, call.given.tablespace, "TABLESPACE")
    secret = call.cluster.get(SECRET, secret_name(tablespace))
    if secret is None:
        raise ClusterError(no_secret(tablespace))
    entries = decoded(secret)
    if not call.given.show_password:
        entries[names.PASSWORD_KEY] = HIDDEN
    widest = max(map(len, entries))
    lines = [f"{name:<{widest}}  {_short(name, value)}" for name, value in entries.items()]
    name = str(secret["metadata"]["name"])
    return Answer("\n".join([f"Secret/{name}", *lines]), {"secret": name, "entries": entries})


def secret_name(tablespace: Json) -> str:
    """The connection Secret's name: what the status says, or what it would say."""
    told = (tablespace.get("status") or {}).get("connectionSecret")
    return str(told or f"{tablespace['metadata']['name']}-connection")


def no_secret(tablespace: Json) -> str:
    """Why there is no connection Secret, as far as the conditions tell."""
    why = "; ".join(trouble.sentence for trouble in troubles(tablespace)) or "it is made once the tablespace is there"
    return f"the Tablespace {tablespace['metadata']['name']} has no connection Secret: {why}"


def decoded(secret: Json) -> dict[str, str]:
    """The entries of a Secret as text, in the order of their names."""
    return {name: base64.b64decode(value).decode(errors="replace") for name, value in sorted((secret.get("data") or {}).items())}


def _short(name: str, value: str) -> str:
    return f"({len(value.splitlines())} lines of PEM)" if name in LONG else value


COMMAND = Command(
    "connection",
    "shows what a client needs to connect to a tablespace: URLs, host, port, user, database",
    run,
    (Argument("tablespace", "a Tablespace", kind=TABLESPACE), Argument("--show-password", "show the password, too", Takes.NOTHING)),
    description="`url` is the one to prefer: it finds the leader through ZooKeeper, whose `spec.clients` have to name the client's pods.",
)
