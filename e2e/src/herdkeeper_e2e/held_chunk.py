"""Blocks a restore in the middle of its load: `python3 -m herdkeeper_e2e.held_chunk`, in a pod of the Spark image with the checkpoints.

The newest checkpoint is about to be restored into the tablespace of this pod's settings. Once the restore has begun, a transaction of this
program takes the mark of a chunk in the middle: the loader of that chunk waits for the transaction's end. Like the writers, it prints
(`acknowledged`) how many chunks precede that one. It ends with a line, or the end, of its standard input, and releases the mark.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from pathlib import Path

from herdkeeper.protocol.restore_bookkeeping import RESTORE_TABLE
from herdkeeper.sql.connection import Connection
from herdkeeper.sql.leader import Patience
from herdkeeper_e2e.session import Session, open_session
from herdkeeper_e2e.tools_pod import CHECKPOINTS

PATIENCE = Patience(deadline_seconds=300.0, call_seconds=120.0)
"""The tablespace need not exist yet."""
POLL_SECONDS = 0.05


class GivenUp(Exception):  # noqa: N818 - an order, not a fault
    """Ends the transaction without a COMMIT."""


def steps(destination: Path) -> list[str]:
    """Returns the chunks of the newest checkpoint, by their names in the restore's bookkeeping, in a single thread's order."""
    from herdkeeper_jobs.manifests.manifest import manifests  # pyarrow is in the Spark image only
    from herdkeeper_jobs.restore.chunks import CHUNK_BYTES, CHUNK_ROWS, row_groups
    from herdkeeper_jobs.restore.source import open_source

    source = open_source(manifests(destination)[-1])
    groups = row_groups(enumerate(source.tables), source.folder, CHUNK_ROWS, CHUNK_BYTES)
    return [chunk.step for group in groups for chunk in group.chunks()]


def has_begun(connection: Connection) -> bool:
    """Returns whether a restore has its bookkeeping in the tablespace."""
    return any(row["table_name"] == RESTORE_TABLE for row in connection.query("SELECT * FROM systables"))


def hold(session: Session, chunks: list[str]) -> None:
    """Take the mark, report it, and keep it until the order. Raises SqlError, and AlreadyDone if it came too late."""
    from herdkeeper_jobs.restore.bookkeeping import mark

    before = len(chunks) // 2
    with session.connect(PATIENCE) as connection:
        while not has_begun(connection):
            time.sleep(POLL_SECONDS)
        with suppress(GivenUp), connection.transaction() as transaction:
            mark(transaction, chunks[before], 0)
            print(json.dumps({"acknowledged": before}), flush=True)
            sys.stdin.readline()
            raise GivenUp


def main() -> None:
    with open_session() as session:
        hold(session, steps(Path(CHECKPOINTS)))


if __name__ == "__main__":
    main()
