"""Which ledgers are striped (E > Wq), inside the cluster: `python3 -m herdkeeper_e2e.striped_ledgers --ledgers-root PATH`; a JSON list."""

from __future__ import annotations

import argparse
import json
import sys

from herdkeeper_e2e.session import Session, SettingError, open_session


def striped_ledgers(session: Session, ledgers_root: str) -> list[int]:
    """Their ids. LookupError where the metadata of a ledger can't be read; raises what kazoo raises."""
    from herdkeeper_jobs.bookkeeper.metadata import VersionedMetadata, identify

    catalog = identify(session.finder.zookeeper, ledgers_root)
    found = []
    for each in catalog.read_many(catalog.ledger_ids()):
        if not isinstance(each, VersionedMetadata):
            raise LookupError(f"the metadata of ledger {each.ledger_id} can't be read: {each.reason}")
        if each.metadata.ensemble_size > each.metadata.write_quorum:
            found.append(each.metadata.ledger_id)
    return found


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledgers-root", required=True)
    arguments = parser.parse_args()
    try:
        with open_session() as session:
            print(json.dumps(striped_ledgers(session, arguments.ledgers_root)))
    except (SettingError, LookupError) as error:
        print(f"striped_ledgers failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
