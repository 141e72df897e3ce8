"""Compares a restored tablespace with its checkpoint: every row that SQL returns, and the schema in HerdDB's system tables.

The chain of proof: the files have the bytes that the checkpoint job wrote (XXH3-128 of each, from the manifest). The files' rows and SQL's
rows, encoded with the checkpoint's definitions, have the same order-free digest (`codecs.herddb.row_digest`). For a table that was never
altered it is the manifest's digest, which was compared with a follower. ALTER leaves rows in an older form, so there the digests of stored
bytes differ though all values are equal. The checkpoint keeps these older forms, and with them its rows have the manifest's digest, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from herdkeeper.codecs.herddb.row_digest import RowDigest, digest_of_rows
from herdkeeper.codecs.herddb.table import Column, ColumnType
from herdkeeper.sql.connection import Connection
from herdkeeper_jobs.checkpoint.arrow_table import rows_of
from herdkeeper_jobs.checkpoint.base import stored_rows
from herdkeeper_jobs.checkpoint.expressible import default_literal
from herdkeeper_jobs.checkpoint.file_check import faults_of_files
from herdkeeper_jobs.checkpoint.table_digests import digests_of_parts
from herdkeeper_jobs.errors import InvariantViolated, RestoreRetryable
from herdkeeper_jobs.restore.chunks import RowGroup
from herdkeeper_jobs.restore.ddl import quoted
from herdkeeper_jobs.restore.rows import digest, sql_rows
from herdkeeper_jobs.restore.session import LEADER_IS_ELSEWHERE, Session, Target, open_session
from herdkeeper_jobs.restore.source import Source, SourceTable

_ATTEMPTS = 5
_SHOWN = 5
"""Altered tables that a status names."""
_TYPE_NAMES = {ColumnType.INTEGER: "integer", ColumnType.BYTES: "bytearray", ColumnType.FLOAT_ARRAY: "floatarray"}
"""The name of a type in syscolumns, if it is not its name in lower case."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What was compared. `altered`: tables whose manifest has another digest, since some rows are stored in an older form."""

    rows: int
    tables: int
    altered: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """For a status."""
        tables = "1 table" if self.tables == 1 else f"{self.tables} tables"
        whole = f"{self.rows} rows of {tables} compared with the checkpoint's by digest"
        more = f" and {len(self.altered) - _SHOWN} more" if len(self.altered) > _SHOWN else ""
        shown = ", ".join(f"{name:.60}" for name in self.altered[:_SHOWN])
        return f"{whole}; altered tables, compared with its files: {shown}{more}" if shown else whole


def check_files(spark: SparkSession, source: Source) -> None:
    """Reads all bytes of all files. Raises InvariantViolated, naming the first missing or changed file."""
    if faults := faults_of_files(spark, source.folder, [file for table in source.tables for file in table.files]):
        raise InvariantViolated(faults[0])


def verify_content(spark: SparkSession, source: Source, groups: Sequence[RowGroup], target: Target) -> Verified:
    """Compares all rows. Raises InvariantViolated, naming the first table that differs; its tasks raise RestoreRetryable."""
    in_files = _file_digests(spark, source, groups)
    in_sql = _sql_digests(spark, source.tables, target)
    altered = []
    for table, files, sql in zip(source.tables, in_files, in_sql, strict=True):
        if files.rows != table.manifest.rows or files != sql:
            raise InvariantViolated(
                f"table {table.name!r}: the checkpoint has {table.manifest.rows} rows (digest {files.hex}), SQL returns {sql.rows} "
                f"(digest {sql.hex})"
            )
        if files.hex != table.manifest.digest:
            altered.append(table)
    if source.manifest.continuation is not None:  # an earlier version keeps no older forms
        _require_stored_rows(spark, source, altered)
    return Verified(sum(sql.rows for sql in in_sql), len(in_sql), tuple(table.name for table in altered))


def _require_stored_rows(spark: SparkSession, source: Source, tables: Sequence[SourceTable]) -> None:
    """Proves that only the form of the rows differs from what HerdDB stored: with their older forms they have the manifest's digest. Raises
    InvariantViolated, naming the first table whose rows have not."""
    folder, definitions = source.folder, [table.definition for table in tables]
    files = [(position, file) for position, table in enumerate(tables) for file in table.files]

    def of_file(number: int) -> tuple[int, RowDigest]:
        position, file = files[number]
        return position, sum(map(digest_of_rows, stored_rows(folder, file, definitions[position])), RowDigest())

    for table, stored in zip(tables, digests_of_parts(spark, len(files), of_file, len(tables)), strict=True):
        if stored.hex != table.manifest.digest:
            raise InvariantViolated(
                f"table {table.name!r}: the checkpoint's files give rows with digest {stored.hex} as HerdDB stores them, instead of "
                f"{table.manifest.digest}: they are not the rows of that moment; restore another checkpoint"
            )


def verify_schema(connection: Connection, source: Source) -> None:
    """Compares columns, keys, defaults, indexes and foreign keys. Raises InvariantViolated, naming what is missing or too much."""
    names = {table.name for table in source.tables}
    expected, found = schema_facts(source), system_facts(connection.query, names)
    for fact in sorted(expected ^ found):
        where = "is missing" if fact in expected else "is not in the checkpoint"
        raise InvariantViolated(f"{' '.join(fact)} {where}")


Fact = tuple[str, ...]


def schema_facts(source: Source) -> set[Fact]:
    """The checkpoint's schema, one tuple of words per fact."""
    facts: set[Fact] = set()
    for table in source.tables:
        definition = table.definition
        for position, column in enumerate(definition.columns, 1):
            kind = _type_name(column)
            automatic = str(int(definition.auto_increment and column.name in definition.primary_key))
            default = default_literal(column) or "NULL"
            facts.add(("column", table.name, column.name, str(position), kind, automatic, _comparable(default, column.type.name)))
        for position, name in enumerate(definition.primary_key):
            facts.add(("key", table.name, f"{table.name}_primary", "pk", "1", name, str(position)))
        for index in table.indexes:
            for position, name in enumerate(index.columns):
                facts.add(("key", table.name, index.name, index.type, str(int(index.unique)), name, str(position)))
        for key in definition.foreign_keys:
            action = {0: "importedNoAction", 1: "importedKeyCascade", 2: "importedKeySetNull"}[key.on_delete]
            parent = source.parent_of(key.parent_uuid)
            for name, parent_name in zip(key.columns, key.parent_columns, strict=True):
                facts.add(("foreign key", table.name, key.name, name, parent, parent_name, action))
    return facts


def _type_name(column: Column) -> str:
    if column.type is ColumnType.FLOAT_ARRAY and not column.nullable:
        return f"type?{ColumnType.FLOAT_ARRAY.value[1]}"  # HerdDB has no name for it (ColumnTypes.typeToString of HerdDB 0.29.0)
    return _TYPE_NAMES.get(column.type, column.type.name.lower()) + ("" if column.nullable else " not null")


def system_facts(query: Callable[[str], Sequence[Mapping[str, object]]], tables: set[str]) -> set[Fact]:
    """The same facts of these tables from HerdDB's system tables."""

    def rows(name: str, table_column: str, *columns: str) -> Iterator[Fact]:
        for row in query(f"SELECT * FROM {name}"):  # noqa: S608 - names of our own
            if row[table_column] in tables:
                yield tuple(str(row[column]) for column in (table_column, *columns))

    columns = rows("syscolumns", "table_name", "column_name", "ordinal_position", "type_name", "auto_increment", "default_value")
    keys = rows("sysindexcolumns", "table_name", "index_name", "index_type", "unique", "column_name", "ordinal_position")
    foreign = ("child_table_cons_name", "child_table_column_name", "parent_table_name", "parent_table_column_name", "on_delete_action")
    return (
        {("column", *fact[:-1], _comparable(fact[-1], fact[3].removesuffix(" not null"))) for fact in columns}
        | {("key", *fact) for fact in keys}
        | {("foreign key", *fact) for fact in rows("sysforeignkeys", "child_table_name", *foreign)}
    )


def _comparable(default: str, kind: str) -> str:
    """Java and Python format some numbers differently."""
    return repr(float(default)) if kind.lower() == "double" and default != "NULL" else default


def _file_digests(spark: SparkSession, source: Source, groups: Sequence[RowGroup]) -> list[RowDigest]:
    folder, definitions = source.folder, [table.definition for table in source.tables]

    def of_group(position: int) -> tuple[int, RowDigest]:
        group = groups[position]
        with folder.parquet_file(group.path) as file:
            rows = (row for batch in file.iter_batches(group.chunk_rows, [group.number]) for row in rows_of(batch))
            return group.table, digest(definitions[group.table], rows)

    return digests_of_parts(spark, len(groups), of_group, len(definitions))


def _sql_digests(spark: SparkSession, tables: Sequence[SourceTable], target: Target) -> list[RowDigest]:
    def of_table(position: int) -> tuple[int, RowDigest]:
        with open_session(target) as session:
            return position, digest_in_sql(session, tables[position])

    return digests_of_parts(spark, len(tables), of_table, len(tables))


def digest_in_sql(session: Session, table: SourceTable) -> RowDigest:
    """Digests a table as SQL returns it. One whose name a SELECT refuses is empty, as `source` requires. Raises RestoreRetryable."""
    if not table.definition.can_be_queried:
        return RowDigest()
    reason = ""
    for _ in range(_ATTEMPTS):
        try:
            rows = session.connection().stream(f"SELECT * FROM {quoted(table.name)}", moment=int)  # noqa: S608
            return digest(table.definition, sql_rows(table.definition, rows))
        except LEADER_IS_ELSEWHERE as error:
            reason = str(error)
            session.close()
    raise RestoreRetryable(f"table {table.name!r} could not be read in {_ATTEMPTS} attempts, the last one: {reason}")
