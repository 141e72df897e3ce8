"""Prints a fact of the metadata as JSON, inside the cluster: `python3 -m herdkeeper_e2e.facts NAME [--ledgers-root PATH]`.

`znodes`: the paths of the ensemble, parents first, without ZooKeeper's own.
`tablespace_record`: HerdDB's own record, which is also current without an operator. `changedAt` is its last change in Unix seconds by
ZooKeeper's clock, and `version` the znode's count of changes.
`first_ledger`, `newest_ledger`: of the tablespace's log: the ledger's id, the bookies of its first segment, whether it is closed, its
znode's version.
`striped_ledgers`: the ids of all with E > Wq.
`archived_log`: see `archive_check`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from herdkeeper.codecs.herddb.ledgers import decode_ledgers, ledgers_path
from herdkeeper.codecs.herddb.tablespace import decode_tablespace, tablespace_path
from herdkeeper_e2e.archive_check import archived_log
from herdkeeper_e2e.session import Session, open_session


def znodes(zookeeper: KazooClient, path: str = "/") -> Iterator[str]:
    """Yields all paths below one, parents first; znodes that vanish meanwhile are left out."""
    try:
        children = sorted(zookeeper.get_children(path))
    except NoNodeError:
        return
    for child in children:
        found = f"{path.rstrip('/')}/{child}"
        if found != "/zookeeper":
            yield found
            yield from znodes(zookeeper, found)


def tablespace_record(session: Session) -> dict[str, object]:
    """Raises the errors of kazoo and the decoder."""
    path = tablespace_path(session.finder.herd_root, session.tablespace)
    session.finder.zookeeper.sync(path)  # a follower may be behind its leader
    data, stat = session.finder.zookeeper.get(path)
    record = decode_tablespace(data)
    times = {"changedAt": stat.last_modified, "unchangedSeconds": time.time() - stat.last_modified}
    return {"leader": record.leader, "replicas": sorted(record.replicas), "version": stat.version, **times}


def ledger_of_log(session: Session, ledgers_root: str, position: int) -> dict[str, object]:
    """Raises the errors of kazoo and the decoders, and LookupError if the ledger's metadata is unreadable."""
    from herdkeeper_jobs.bookkeeper.metadata import VersionedMetadata, identify

    zookeeper, root = session.finder.zookeeper, session.finder.herd_root
    record = decode_tablespace(zookeeper.get(tablespace_path(root, session.tablespace))[0])
    ledger = decode_ledgers(zookeeper.get(ledgers_path(root, record.uuid))[0]).active[position]
    found = identify(zookeeper, ledgers_root).read_ledger_metadata(ledger)
    if not isinstance(found, VersionedMetadata):
        raise LookupError(f"the metadata of ledger {ledger} can't be read: {found}")
    bookies = list(found.metadata.segments[0].bookies)
    return {"ledger": ledger, "bookies": bookies, "closed": found.metadata.closed, "version": found.znode_version}


def striped_ledgers(session: Session, ledgers_root: str) -> list[int]:
    """Raises LookupError if a ledger's metadata is unreadable, and kazoo's errors."""
    from herdkeeper_jobs.bookkeeper.metadata import VersionedMetadata, identify

    catalog = identify(session.finder.zookeeper, ledgers_root)
    found = []
    for each in catalog.read_many(catalog.ledger_ids()):
        if not isinstance(each, VersionedMetadata):
            raise LookupError(f"the metadata of ledger {each.ledger_id} can't be read: {each.reason}")
        if each.metadata.ensemble_size > each.metadata.write_quorum:
            found.append(each.metadata.ledger_id)
    return found


FACTS: dict[str, Callable[[Session, str], object]] = {
    "znodes": lambda session, _: list(znodes(session.finder.zookeeper)),
    "tablespace_record": lambda session, _: tablespace_record(session),
    "first_ledger": lambda session, root: ledger_of_log(session, root, 0),
    "newest_ledger": lambda session, root: ledger_of_log(session, root, -1),
    "striped_ledgers": striped_ledgers,
    "archived_log": archived_log,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fact", choices=FACTS)
    parser.add_argument("--ledgers-root", default="", help="of the BookKeeperCluster; for all that is said of ledgers")
    arguments = parser.parse_args()
    with open_session() as session:
        print(json.dumps(FACTS[arguments.fact](session, arguments.ledgers_root)))


if __name__ == "__main__":
    main()
