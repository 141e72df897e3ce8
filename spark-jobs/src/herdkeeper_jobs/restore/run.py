"""The restore job in order: checkpoint -> files -> begin -> tables -> rows, parents first -> verify -> end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

import structlog
from pyspark.sql import SparkSession

from herdkeeper.protocol.job_summary import JobOutcome, RestoreSummary
from herdkeeper.protocol.restore_bookkeeping import RESTORE_TABLE
from herdkeeper.sql.connection import Connection
from herdkeeper_jobs.errors import InvariantViolated, RestoreRefused
from herdkeeper_jobs.restore import bookkeeping, ddl
from herdkeeper_jobs.restore.bookkeeping import Begin, Header
from herdkeeper_jobs.restore.checkpoint_of_moment import MomentSource, left_out_of
from herdkeeper_jobs.restore.chunks import CHUNK_BYTES, CHUNK_ROWS, Chunk, row_groups
from herdkeeper_jobs.restore.circle import Circle, read_circle
from herdkeeper_jobs.restore.circle_load import load_circle
from herdkeeper_jobs.restore.foreign_keys import add_foreign_keys
from herdkeeper_jobs.restore.levels import levels
from herdkeeper_jobs.restore.load import Batch, ChunkLoader, load_groups
from herdkeeper_jobs.restore.session import Session, Target, open_session
from herdkeeper_jobs.restore.source import Source, SourceTable
from herdkeeper_jobs.restore.verify import Verified, check_files, verify_content, verify_schema
from herdkeeper_jobs.storage.stored_path import StoredPath
from herdkeeper_jobs.wal.moment import stamp

_log = structlog.get_logger()
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """The arguments of one run. `source`: the checkpoint's manifest, or the moment to restore. The tablespace exists, and is empty or holds
    an unfinished run."""

    source: StoredPath | MomentSource
    target: Target
    run_id: str


def run_restore(spark: SparkSession, source: Source, request: RestoreRequest) -> RestoreSummary:
    """Makes the tablespace equal to the checkpoint and returns the summary.

    Raises:
        RestoreRefused, RestoreRetryable, InvariantViolated, SqlError: the tablespace must not be used then.
    """
    started = time.monotonic()
    check_files(spark, source)
    _log.info("files verified", files=sum(len(table.files) for table in source.tables), rows=source.rows)
    with open_session(request.target) as session:
        header, begin = _begin(session.connection(), source)
        _log.info("tablespace found", begin=begin.name)
        loaded = 0 if begin is Begin.FILLED else _fill(spark, source, request.target, session, header)
        try:
            verified = _verify(spark, source, request.target, session, header)
        except InvariantViolated as error:
            raise failed_comparison(begin, error) from error
        if begin is not Begin.FILLED:
            bookkeeping.end(session.connection())
    return _summary(request, source, verified, (begin, loaded, time.monotonic() - started))


def failed_comparison(begin: Begin, error: InvariantViolated) -> RestoreRefused | InvariantViolated:
    """Converts a difference in tables that this restore did not make: nobody must be told to delete another's tables."""
    if begin is not Begin.FILLED:
        return error
    return RestoreRefused(f"the tablespace has tables that this restore did not make: {error}; restore into a new Tablespace")


def _begin(connection: Connection, source: Source) -> tuple[Header, Begin]:
    """Returns how far an earlier run came, with its header, so that both have the same chunks."""
    tables = bookkeeping.user_tables(connection)
    found = bookkeeping.read_header(connection) if RESTORE_TABLE in tables else None
    wished = Header(source.hash, str(source.path), source.rows, CHUNK_ROWS, CHUNK_BYTES)
    begin = bookkeeping.find_begin(tables, found, wished, {table.name for table in source.tables})
    match begin:
        case Begin.EMPTY:
            bookkeeping.begin(connection, wished)
        case Begin.BEGUN:
            _log.info("goes on", lost_transactions=bookkeeping.end_lost(connection))
        case Begin.FILLED:
            pass
        case _:
            assert_never(begin)
    return found or wished, begin


def _fill(spark: SparkSession, source: Source, target: Target, session: Session, header: Header) -> int:
    """Creates the tables and loads their rows; returns how many rows this run loaded."""
    in_order = [(level, [_circle(source, tables, header) for tables in level.circles]) for level in levels(source.tables)]
    done = bookkeeping.marks(session.connection())
    _make_tables(session, source, done)
    numbers = {table.name: number for number, table in enumerate(source.tables)}
    loaded = 0
    for level, circles in in_order:
        keys = [(table, key) for table in level.independent for key in table.definition.foreign_keys]
        add_foreign_keys(session.connection(), source, keys)
        numbered = ((numbers[table.name], table) for table in level.independent)
        groups = row_groups(numbered, source.folder, header.chunk_rows, header.chunk_bytes)
        loaded += load_groups(spark, groups, source.tables, (source.folder, target), done)
        loaded += sum(load_circle(session, source, circle, done) for circle in circles)
        _log.info("rows loaded", tables=[table.name for table in level.tables], loaded=loaded)
    return loaded


def _circle(source: Source, tables: tuple[SourceTable, ...], header: Header) -> Circle:
    """Reads a circle. Called before any table is created, so that rows without an order are refused then."""
    return read_circle(tables, row_groups(enumerate(tables), source.folder, header.chunk_rows, header.chunk_bytes), source.folder)


def _make_tables(session: Session, source: Source, done: Mapping[str, int]) -> None:
    """Creates tables, next auto-increment keys, and indexes. Each step is repeatable until its mark, or its result, exists."""
    connection = session.connection()
    indexes = {str(row["index_name"]) for row in connection.query("SELECT * FROM sysindexes") if row["tablespace"] == connection.tablespace}
    there = bookkeeping.user_tables(connection)
    for table in source.tables:
        # HerdDB alters no column with an index. An earlier run that came to the indexes had set the defaults.
        defaults = [] if any(index.name in indexes for index in table.indexes) else ddl.defaults_apart(table.definition)
        for statement in (*([] if table.name in there else [ddl.create_table(table.definition)]), *defaults):
            bookkeeping.define(session.connection(), statement)
        if table.definition.auto_increment and table.manifest.highest_auto_increment is not None:
            _advance_key(session, table, table.manifest.highest_auto_increment, done)
        for index in table.indexes:
            if index.name not in indexes:
                bookkeeping.define(session.connection(), ddl.create_index(index))


def _advance_key(session: Session, table: SourceTable, highest: int, done: Mapping[str, int]) -> None:
    """Advances the next key above every key ever inserted, as HerdDB does, even if that row is gone.

    No row is loaded and no index exists yet, so the temporary row conflicts with none. It comes and goes with a mark each, like a chunk. So
    a driver that stood still until another one had restored the tablespace, or until it was made anew, deletes no row of it.
    """
    inserted, advanced = Chunk(f"temporary row of {table.name}", 1), Chunk(f"auto-increment of {table.name}", -1)
    if advanced.step in done:
        return
    loader = ChunkLoader(session)
    loader.load(inserted, [Batch(ddl.insert(table.definition), [ddl.filler_row(table.definition, highest)])])
    loader.load(advanced, [Batch(ddl.delete_by_key(table.definition), [[highest]])])


def _verify(spark: SparkSession, source: Source, target: Target, session: Session, header: Header) -> Verified:
    verify_schema(session.connection(), source)
    groups = row_groups(enumerate(source.tables), source.folder, header.chunk_rows, header.chunk_bytes)
    verified = verify_content(spark, source, groups, target)
    _log.info("verified", rows=verified.rows, tables=verified.tables, altered=verified.altered)
    return verified


def _summary(request: RestoreRequest, source: Source, verified: Verified, run: tuple[Begin, int, float]) -> RestoreSummary:
    begin, loaded, seconds = run
    lsn, millis = source.manifest.lsn, source.manifest.lsn_timestamp_millis
    stamped = "" if millis is None else stamp(millis)
    done = "had been restored" if begin is Begin.FILLED else "restored"
    left_out = left_out_of(request.source) if isinstance(request.source, MomentSource) else 0
    skewed = (
        f"; {left_out} entries behind it are stamped at or before the time, and left out; name an LSN to include them" if left_out else ""
    )
    if left_out is None:
        skewed = "; the archive behind it can't be read, so it is unknown which entries a fast clock leaves out"
    lacks = _lacks(source)
    return RestoreSummary(
        run_id=request.run_id,
        outcome=JobOutcome.ALREADY_DONE if begin is Begin.FILLED else JobOutcome.SUCCEEDED,
        message=f"{verified.rows} rows {done} from the checkpoint of {source.manifest.identity.tablespace} at {lsn.lsn}"
        f"{f' ({stamped})' if stamped else ''}{lacks}{skewed}",
        tablespace=request.target.tablespace,
        manifest=str(source.path),
        ledger_id=lsn.ledger_id,
        entry_id=lsn.entry_id,
        lsn_timestamp=stamped,
        rows=verified.rows,
        rows_loaded=loaded,
        tables=verified.tables,
        verified=verified.sentence,
        duration_seconds=round(seconds, 3),
    )


def _lacks(source: Source) -> str:
    """What the tables lack, for people; empty if nothing."""
    more = f" and {len(source.left_out) - _SHOWN} more" if len(source.left_out) > _SHOWN else ""
    found = ", ".join(source.left_out[:_SHOWN])
    why = "whose columns or parent were dropped or renamed or have names of more than 128 characters, or whose name is that of a table"
    return f"; without {found}{more}, {why}" if found else ""
