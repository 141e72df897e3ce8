"""Prints a SQL node's view of the tablespace, inside the cluster: `python3 -m herdkeeper_e2e.sql_node --host HOST`, as one JSON object.

With `--order checkpoint` (or another order of images/herddb, with the token of the credentials Secret on standard input) it prints the
answer to that order instead.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from herdkeeper.clients.bounded_http import Question, Trust, ask
from herdkeeper.shared.names import HERDDB_HTTP_PORT
from herdkeeper.tls.identity import own_identity
from herdkeeper_e2e.session import TABLESPACE

TIMEOUT_SECONDS = 60.0


def said_of(host: str, tablespace: str) -> Any:
    """Returns an entry of `GET /tablespaces`. Raises LookupError if there is none; OSError, HTTPException if the node does not answer."""
    found = [entry for entry in _asked(host, "GET", "/tablespaces") if entry["name"] == tablespace.lower()]
    if not found:
        raise LookupError(f"{host} says nothing of the tablespace {tablespace}")
    return found[0]


def ordered(host: str, tablespace: str, order: str, token: str) -> Any:
    """Returns the answer to a successful order. Raises OSError with the node's error, and HTTPException."""
    return _asked(host, "POST", f"/tablespaces/{tablespace.lower()}/{order}", token)


def _asked(host: str, method: str, path: str, token: str = "") -> Any:
    """Where this process has a certificate of a stack, the node must show one of the same authority."""
    identity = own_identity()
    trust = None if identity is None else Trust(identity().authorities, host)
    url = f"{'http' if trust is None else 'https'}://{host}:{HERDDB_HTTP_PORT}{path}"
    answer = ask(Question(method, url, TIMEOUT_SECONDS, {"Authorization": f"Bearer {token}"} if token else {}, trust=trust))
    if not answer.succeeded:
        raise OSError(f"{url} answered {answer.status}: {answer.body[:500].decode(errors='replace')}")
    return json.loads(answer.body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", required=True, help="of the SQL node")
    parser.add_argument("--order", help="what it shall do with the tablespace")
    arguments = parser.parse_args()
    host, tablespace = arguments.host, os.environ[TABLESPACE]
    found = ordered(host, tablespace, arguments.order, sys.stdin.read().strip()) if arguments.order else said_of(host, tablespace)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
