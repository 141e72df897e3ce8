"""Which passwords SQL nodes take, inside the cluster: `python3 -m herdkeeper_e2e.taken_passwords NODE…`.

Asks each with the password of the pod's environment, and with the next one where there is one. Prints a line of JSON for each node:
`node`, `first` and `next`, true where it took it. Ends with 1 when a node does not answer.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from kazoo.exceptions import KazooException

from herdkeeper.codecs.herddb.node import decode_node, node_path
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.sql.connection import Address, Connection, Credentials
from herdkeeper.sql.encryption import Encryption
from herdkeeper.sql.errors import AuthenticationFailed, SqlError
from herdkeeper_e2e.session import Session, SettingError, open_session

TIMEOUT_SECONDS = 10.0


def address_of(session: Session, node: str) -> Address:
    """Where a SQL node is, and how it is spoken to, by its own record. Raises KazooException, MalformedDataError."""
    record = decode_node(session.finder.zookeeper.get(node_path(session.finder.herd_root, node))[0])
    return Address(record.host, record.port, Encryption(record.host, None) if record.tls else None)


def takes(address: Address, credentials: Credentials | None) -> bool:
    """Whether a node lets somebody in; nobody is not let in. ConnectionLost when it does not answer."""
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


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes", nargs="+", metavar="NODE")
    arguments = parser.parse_args()
    try:
        with open_session() as session:
            tell(session, arguments.nodes)
    except (KazooException, MalformedDataError, SqlError, SettingError) as error:
        print(f"taken_passwords failed: {error!r}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
