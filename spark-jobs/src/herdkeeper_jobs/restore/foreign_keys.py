"""Adds the foreign keys of restored tables."""

from __future__ import annotations

from collections.abc import Iterable

from herdkeeper.codecs.herddb.table import ForeignKey
from herdkeeper.sql.connection import Connection
from herdkeeper_jobs.restore import bookkeeping, ddl
from herdkeeper_jobs.restore.source import Source, SourceTable


def add_foreign_keys(connection: Connection, source: Source, keys: Iterable[tuple[SourceTable, ForeignKey]]) -> None:
    """Adds those that are missing.

    They are added before the rows if possible. HerdDB takes a null as no reference when a row comes in, and as a broken one when the key is
    added later.
    """
    rows = connection.query("SELECT * FROM sysforeignkeys")
    there = {(str(row["child_table_name"]), str(row["child_table_cons_name"])) for row in rows}
    for table, key in keys:
        if (table.name, key.name) not in there:
            bookkeeping.define(connection, ddl.add_foreign_key(table.name, key, source.parent_of(key.parent_uuid)))
