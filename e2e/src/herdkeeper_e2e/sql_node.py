"""Prints a SQL node's view of the tablespace, inside the cluster: `python3 -m herdkeeper_e2e.sql_node --host HOST`, as one JSON object.

With `--order checkpoint` (or another order of images/herddb, with the token of the credentials Secret on standard input) it prints the
answer to that order instead.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import urllib.error
import urllib.request
from typing import Any

from herdkeeper.shared.names import HERDDB_HTTP_PORT
from herdkeeper_e2e.session import TABLESPACE

TIMEOUT_SECONDS = 60.0


def said_of(host: str, tablespace: str) -> Any:
    """Returns an entry of `GET /tablespaces`. Raises LookupError if there is none, and OSError if the node does not answer."""
    with urllib.request.urlopen(f"http://{host}:{HERDDB_HTTP_PORT}/tablespaces", timeout=TIMEOUT_SECONDS) as answer:
        found = [entry for entry in json.load(answer) if entry["name"] == tablespace.lower()]
    if not found:
        raise LookupError(f"{host} says nothing of the tablespace {tablespace}")
    return found[0]


def ordered(host: str, tablespace: str, order: str, token: str) -> Any:
    """Returns the answer to a successful order. Raises OSError with the node's error."""
    url = f"http://{host}:{HERDDB_HTTP_PORT}/tablespaces/{tablespace.lower()}/{order}"
    request = urllib.request.Request(url, method="POST", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise OSError(f"{url} answered {error.code}: {error.read(500).decode(errors='replace')}") from error


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", required=True, help="of the SQL node")
    parser.add_argument("--order", help="what it shall do with the tablespace")
    arguments = parser.parse_args()
    host, tablespace = arguments.host, os.environ[TABLESPACE]
    try:
        found = ordered(host, tablespace, arguments.order, sys.stdin.read().strip()) if arguments.order else said_of(host, tablespace)
    except (LookupError, OSError) as error:
        print(f"sql_node failed: {error!r}", file=sys.stderr)
        return 1
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
