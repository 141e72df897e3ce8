"""Prints a SQL node's position in a tablespace's log, inside the cluster: `python3 -m herdkeeper_e2e.log_position --host HOST`.

The output is one JSON object, `{"ledgerId": 3, "entryId": 17}`, as in the target of a Checkpoint.
"""

from __future__ import annotations

import argparse
import json
import os

from herdkeeper_e2e.session import TABLESPACE
from herdkeeper_e2e.sql_node import said_of


def log_position(host: str, tablespace: str) -> dict[str, int]:
    """Returns the last entry that the node has written or read. Raises LookupError if it reports none, and what `said_of` raises."""
    found = said_of(host, tablespace)["log"]
    if found is None or found["entryId"] < 0:
        raise LookupError(f"{host} tells of no entry in the log of {tablespace}: {found}")
    return {name: int(found[name]) for name in ("ledgerId", "entryId")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", required=True, help="of the SQL node")
    print(json.dumps(log_position(parser.parse_args().host, os.environ[TABLESPACE])))


if __name__ == "__main__":
    main()
