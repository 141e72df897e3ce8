"""Which ledger a tablespace's log begins with, and who holds it: `python3 -m herdkeeper_e2e.first_ledger --ledgers-root PATH`.

Prints one JSON object: the ledger's id, the bookies of its first segment, and whether it is closed.
"""

from __future__ import annotations

import argparse
import json
import sys

from herdkeeper.formats.herddb_ledgers import decode_ledgers, ledgers_path
from herdkeeper.formats.herddb_tablespace import decode_tablespace, tablespace_path
from herdkeeper_e2e.session import Session, SettingError, open_session


def first_ledger(session: Session, ledgers_root: str) -> dict[str, object]:
    """Id, bookies and whether it is closed. Raises what kazoo and the decoders raise."""
    from herdkeeper_jobs.bookkeeper.metadata import VersionedMetadata, identify

    zookeeper, root = session.finder.zookeeper, session.finder.herd_root
    record = decode_tablespace(zookeeper.get(tablespace_path(root, session.tablespace))[0])
    ledger = decode_ledgers(zookeeper.get(ledgers_path(root, record.uuid))[0]).active[0]
    found = identify(zookeeper, ledgers_root).read_ledger_metadata(ledger)
    if not isinstance(found, VersionedMetadata):
        raise LookupError(f"the metadata of ledger {ledger} can't be read: {found}")
    return {"ledger": ledger, "bookies": list(found.metadata.segments[0].bookies), "closed": found.metadata.closed}


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledgers-root", required=True)
    arguments = parser.parse_args()
    try:
        with open_session() as session:
            print(json.dumps(first_ledger(session, arguments.ledgers_root)))
    except (SettingError, LookupError) as error:
        print(f"first_ledger failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
