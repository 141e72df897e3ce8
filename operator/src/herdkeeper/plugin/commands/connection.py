"""`kubectl herdkeeper connection`: what a client needs to connect to a tablespace."""

from __future__ import annotations

import base64

from herdkeeper.plugin.cluster import Cluster, ClusterError
from herdkeeper.plugin.command import Answer, Argument, Call, Command, Takes, find
from herdkeeper.plugin.kinds import SECRET, TABLESPACE
from herdkeeper.plugin.stack_tree import troubles
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json

HIDDEN = "(hidden: --show-password)"
SHOWN = (
    names.CONNECTION_HOST_KEY,
    names.CONNECTION_PORT_KEY,
    names.CONNECTION_URL_KEY,
    names.CONNECTION_LEADER_URL_KEY,
    names.CONNECTION_USER_KEY,
    names.CONNECTION_DATABASE_KEY,
    names.AUTHORITIES_KEY,
)
"""Entries without a secret. A Secret of that name that is not the operator's may have any others."""
LONG = (names.AUTHORITIES_KEY,)
"""Entries with many lines: the text shows only that they exist."""


def run(call: Call) -> Answer:
    """Show the entries of the connection Secret, without the password unless requested."""
    tablespace = find(call.cluster, TABLESPACE, call.given.tablespace, "TABLESPACE")
    entries = login_of(call.cluster, tablespace)
    if not call.given.show_password:
        entries = {name: value if name in SHOWN else HIDDEN for name, value in entries.items()}
    widest = max(map(len, entries), default=0)
    short = {name: f"({len(value.splitlines())} lines of PEM)" if name in LONG else value for name, value in entries.items()}
    lines = [f"{name:<{widest}}  {value}" for name, value in short.items()]
    name = secret_name(tablespace)
    return Answer("\n".join([f"Secret/{name}", *lines]), {"secret": name, "entries": entries})


def secret_name(tablespace: Json) -> str:
    """Returns the connection Secret's name, by the status or as it would be."""
    told = (tablespace.get("status") or {}).get("connectionSecret")
    return str(told or f"{tablespace['metadata']['name']}-connection")


def login_of(cluster: Cluster, tablespace: Json) -> dict[str, str]:
    """Returns the entries of the connection Secret. Without one it raises ClusterError, with why by the conditions."""
    secret = cluster.get(SECRET, secret_name(tablespace))
    if secret is None:
        why = "; ".join(trouble.sentence for trouble in troubles(tablespace)) or "it is created once the tablespace exists"
        raise ClusterError(f"the Tablespace {tablespace['metadata']['name']} has no connection Secret: {why}")
    return {name: base64.b64decode(value).decode(errors="replace") for name, value in sorted((secret.get("data") or {}).items())}


COMMAND = Command(
    "connection",
    "shows what a client needs to connect to a tablespace: URLs, host, port, user, database",
    run,
    (Argument("tablespace", "a Tablespace", kind=TABLESPACE), Argument("--show-password", "show the password, too", Takes.NOTHING)),
    description="HerdDB's Java driver: prefer `url`, which finds the leader through ZooKeeper. `spec.clients` of the ZooKeeperCluster must "
    "name the client's pods, and unless the stack is in plain text they need the certificate of the Secret "
    "`<BookKeeperCluster>-bookie-readers`. `leaderUrl` needs neither, but a process must reconnect after a change of the leader. Python: "
    "`host`, `port` and `ca.crt`.",
)
