"""What a restore of a fold can't load, or loads changed."""

from __future__ import annotations

from collections.abc import Iterable

from herdkeeper.codecs.herddb.table import MOST_COLUMNS, MOST_OF_NAME, beginning
from herdkeeper.protocol.restore_bookkeeping import RESTORE_TABLE
from herdkeeper_jobs.checkpoint.expressible import inexpressible, needs_a_shorter_name
from herdkeeper_jobs.checkpoint.folded_log import Folded
from herdkeeper_jobs.checkpoint.folded_manifest import manifest_index

_SHOWN = 5
"""Columns that a text names."""


def why_unrestorable(folded: Folded) -> list[str]:
    """Names what a restore can't load. HerdDB stores NULL in a NOT NULL column with a default, and refuses it in an INSERT by name."""
    tables = list(zip(folded.timeline.tables, folded.written, strict=True))
    nulls = _columns((table.name, written.nulls_in) for table, written in tables)
    highest = folded.highest_keys
    long_names = [table.name for table, written in tables if needs_a_shorter_name(table, written.digest.rows, highest.get(table.uuid))]
    indexes = [manifest_index(index) for index in folded.timeline.indexes]
    refused = [
        f"table {table.name!r:.60}: {reason}"
        for table, _ in tables
        for reason in inexpressible(table, [index for index in indexes if index.table == table.name])
    ]
    found = []
    if any(table.name == RESTORE_TABLE for table, _ in tables):
        found.append(f"it can't be restored: a restore still filled the tablespace ({RESTORE_TABLE}). Wait for its end, and make another")
    if long_names:
        found.append(
            f"it can't be restored as it is: no INSERT accepts the name {beginning(long_names[0])}, which has more than "
            f"{MOST_OF_NAME} characters. Rename the table (EXECUTE RENAMETABLE), and make another Checkpoint"
        )
    if refused:
        found.append(f"it can't be restored as it is: no statement makes {refused[0]}. Change it, or drop it, and make another Checkpoint")
    if nulls:
        found.append(
            f"it can't be restored as it is: {nulls} hold a NULL and are declared NOT NULL, which no INSERT may do. "
            "UPDATE these rows, or ALTER TABLE ... MODIFY the columns without NOT NULL, and make another Checkpoint"
        )
    return found


def what_a_restore_changes(folded: Folded) -> list[str]:
    """Names what a restore loads changed. HerdDB does not check the bytes of a text: clients in other languages than Java may send any."""
    tables = list(zip(folded.timeline.tables, folded.written, strict=True))
    invalid_texts = _columns((table.name, written.invalid_text_in) for table, written in tables)
    unread = _columns((table.name, table.unread_columns) for table, _ in tables)
    found = []
    if unread:
        found.append(
            f"HerdDB returns NULL for whatever is stored in {unread}, and an UPDATE of the row loses it: the table had more than "
            f"{MOST_COLUMNS} columns, dropped ones included. The files have the values. A table that still has more can't be restored"
        )
    if invalid_texts:
        found.append(
            f"{invalid_texts} hold text that is not UTF-8: a restore replaces its bytes by U+FFFD, and fails if two keys become equal by "
            "that. Write these rows anew, and make another Checkpoint"
        )
    return found


def _columns(found: Iterable[tuple[str, frozenset[str]]]) -> str:
    """Some columns of tables, for people."""
    names = [f"{table}.{column}" for table, columns in found for column in sorted(columns)]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
