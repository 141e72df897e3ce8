"""Prints the striped ledgers (E > Wq), inside the cluster: `python3 -m herdkeeper_e2e.striped_ledgers --ledgers-root PATH`; a JSON list."""

from __future__ import annotations

from herdkeeper_e2e.metadata_program import print_answer
from herdkeeper_e2e.session import Session


def striped_ledgers(session: Session, ledgers_root: str) -> list[int]:
    """Returns their ids. Raises LookupError if a ledger's metadata is unreadable, and kazoo's errors."""
    from herdkeeper_jobs.bookkeeper.metadata import VersionedMetadata, identify

    catalog = identify(session.finder.zookeeper, ledgers_root)
    found = []
    for each in catalog.read_many(catalog.ledger_ids()):
        if not isinstance(each, VersionedMetadata):
            raise LookupError(f"the metadata of ledger {each.ledger_id} can't be read: {each.reason}")
        if each.metadata.ensemble_size > each.metadata.write_quorum:
            found.append(each.metadata.ledger_id)
    return found


if __name__ == "__main__":
    print_answer(__doc__, striped_ledgers)
