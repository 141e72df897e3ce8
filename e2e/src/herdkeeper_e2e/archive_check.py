"""Compares a tablespace's archived log with the ledgers' metadata, in a pod that mounts the archive's volume, or has the variables of its
object store, including ARCHIVE_DESTINATION.

Bytes are verified while they are read. Segments must not expire meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from herdkeeper.codecs.herddb.ledgers import decode_ledgers, ledgers_path
from herdkeeper.codecs.herddb.tablespace import decode_tablespace, tablespace_path
from herdkeeper_e2e.session import Session
from herdkeeper_e2e.tools_pod import CHECKPOINTS

DESTINATION = "ARCHIVE_DESTINATION"


def wrong_of(archived: Mapping[int, Sequence[int]], ends: Mapping[int, int | None]) -> list[str]:
    """Returns what is wrong with the entry ids of each ledger in an archive. `ends`: the last entry of each ledger, None
    while it is open.
    """
    found = []
    oldest, newest = min(archived, default=-1), max(archived, default=-1)
    for ledger, entries in sorted(archived.items()):
        if list(entries) != list(range(entries[0], entries[0] + len(entries))):
            found.append(f"ledger {ledger} has a gap, or an entry twice, among {len(entries)}")
        if ledger > oldest and entries[0] != 0:
            found.append(f"ledger {ledger} begins with entry {entries[0]}, behind ledger {oldest}")
        end = ends.get(ledger)
        if end is not None and ledger < newest and entries[-1] != end:
            found.append(f"ledger {ledger} ends with {end}, and is archived up to entry {entries[-1]}")
    return found


def archived_log(session: Session, ledgers_root: str) -> dict[str, object]:
    """Returns segments, entries, the first and the last LSN, where the first segment ends, the completely archived ledgers, and what is
    wrong: a gap, an entry twice, a ledger without its beginning after another one, or a closed ledger without its end before a later one.
    Raises the errors of kazoo, the decoders and the archive's readers.
    """
    from herdkeeper_jobs.archive.segment import read_segment, segments
    from herdkeeper_jobs.bookkeeper.metadata import VersionedMetadata, identify
    from herdkeeper_jobs.manifests.manifest import Identity
    from herdkeeper_jobs.storage.stored_path import found_below, stored_path

    zookeeper, root = session.finder.zookeeper, session.finder.herd_root
    uuid = decode_tablespace(zookeeper.get(tablespace_path(root, session.tablespace))[0]).uuid
    (folder,) = found_below(stored_path(os.environ.get(DESTINATION) or CHECKPOINTS), f"*/{uuid}")
    identity = Identity(
        instance_id=folder.parent.name, tablespace_uuid=uuid, tablespace=session.tablespace, ledgers_root=ledgers_root, herd_root=root
    )
    catalog = identify(zookeeper, ledgers_root)
    ends = {}
    for ledger in decode_ledgers(zookeeper.get(ledgers_path(root, uuid))[0]).active:
        known = catalog.read_ledger_metadata(ledger)
        ends[ledger] = known.metadata.last_entry_id if isinstance(known, VersionedMetadata) else None
    archived: dict[int, list[int]] = {}
    chain = segments(folder, identity)
    for segment in chain:
        table = read_segment(segment, folder)
        for ledger, entry in zip(table["ledger_id"].to_pylist(), table["entry_id"].to_pylist(), strict=True):
            archived.setdefault(ledger, []).append(entry)
    return {
        "segments": len(chain),
        "entries": sum(map(len, archived.values())),
        "first": [chain[0].first.lsn.ledger_id, chain[0].first.lsn.entry_id],
        "first_segment_ends": [chain[0].last.lsn.ledger_id, chain[0].last.lsn.entry_id],
        "last": [chain[-1].last.lsn.ledger_id, chain[-1].last.lsn.entry_id],
        "to_the_end": [ledger for ledger, entries in archived.items() if ends.get(ledger) == entries[-1]],
        "wrong": wrong_of(archived, ends),
    }
