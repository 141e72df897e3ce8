"""Prints which passwords SQL nodes accept, inside the cluster: `python3 -m herdkeeper_e2e.taken_passwords NODE…`.

It tries the password in the pod's environment on each, and the next one, if any. It prints a line of JSON per node: `node`, `first` and
`next`, true if accepted. Exits with 1 if a node does not answer.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from herdkeeper.codecs.herddb.node import decode_node, node_path
from herdkeeper.sql.connection import Address, Connection, Credentials
from herdkeeper.sql.encryption import Encryption
from herdkeeper.sql.errors import AuthenticationFailed
from herdkeeper_e2e.session import Session, open_session

TIMEOUT_SECONDS = 10.0


def address_of(session: Session, node: str) -> Address:
    """Returns a SQL node's address and encryption, by its record. Raises KazooException, MalformedDataError."""
    record = decode_node(session.finder.zookeeper.get(node_path(session.finder.herd_root, node))[0])
    return Address(record.host, record.port, Encryption(record.host, None) if record.tls else None)


def takes(address: Address, credentials: Credentials | None) -> bool:
    """Returns whether a node accepts the login; None never is. Raises ConnectionLost if it does not answer."""
    if credentials is None:
        return False
    try:
        Connection.connect(address, credentials, timeout_seconds=TIMEOUT_SECONDS).close()
    except AuthenticationFailed:
        return False
    return True


def tell(session: Session, nodes: Sequence[str]) -> None:
    """One line for each node."""
    for node in nodes:
        address = address_of(session, node)
        print(json.dumps({"node": node, "first": takes(address, session.credentials), "next": takes(address, session.otherwise)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes", nargs="+", metavar="NODE")
    arguments = parser.parse_args()
    with open_session() as session:
        tell(session, arguments.nodes)


if __name__ == "__main__":
    main()
