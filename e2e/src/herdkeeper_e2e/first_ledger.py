"""Prints the first ledger of a tablespace's log and its bookies: `python3 -m herdkeeper_e2e.first_ledger --ledgers-root PATH`.

The output is one JSON object: the ledger's id, the bookies of its first segment, whether it is closed, and its znode's version.
"""

from __future__ import annotations

from herdkeeper.codecs.herddb.ledgers import decode_ledgers, ledgers_path
from herdkeeper.codecs.herddb.tablespace import decode_tablespace, tablespace_path
from herdkeeper_e2e.metadata_program import print_answer
from herdkeeper_e2e.session import Session


def first_ledger(session: Session, ledgers_root: str) -> dict[str, object]:
    """Returns id, bookies, whether it is closed, and the version of its metadata. Raises the errors of kazoo and the decoders."""
    from herdkeeper_jobs.bookkeeper.metadata import VersionedMetadata, identify

    zookeeper, root = session.finder.zookeeper, session.finder.herd_root
    record = decode_tablespace(zookeeper.get(tablespace_path(root, session.tablespace))[0])
    ledger = decode_ledgers(zookeeper.get(ledgers_path(root, record.uuid))[0]).active[0]
    found = identify(zookeeper, ledgers_root).read_ledger_metadata(ledger)
    if not isinstance(found, VersionedMetadata):
        raise LookupError(f"the metadata of ledger {ledger} can't be read: {found}")
    return {
        "ledger": ledger,
        "bookies": list(found.metadata.segments[0].bookies),
        "closed": found.metadata.closed,
        "version": found.znode_version,
    }


if __name__ == "__main__":
    print_answer(__doc__, first_ledger)
