"""SQLAlchemy's dialect for HerdDB, and reflection from its system tables."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

from sqlalchemy import exc, pool, text, types
from sqlalchemy.engine import Connection, default, reflection
from sqlalchemy.engine.interfaces import (
    ReflectedCheckConstraint,
    ReflectedColumn,
    ReflectedForeignKeyConstraint,
    ReflectedIndex,
    ReflectedPrimaryKeyConstraint,
    ReflectedUniqueConstraint,
)
from sqlalchemy.engine.url import URL

from herdkeeper.sql import dbapi
from herdkeeper.sql.dbapi.errors import MadeElsewhere
from herdkeeper.sql.sqlalchemy_dialect import compilers
from herdkeeper.sql.sqlalchemy_dialect.types import Day, Moment, TypeCompiler, of_column

_MADE_KEY = "_pk"
"""HerdDB's own key for a table without one."""
_AUTOCOMMIT = "AUTOCOMMIT"
_ACTIONS = {"importedKeyCascade": "CASCADE", "importedKeySetNull": "SET NULL"}


class HerdDBDialect(default.DefaultDialect):
    """Connections repair themselves (see herdkeeper.sql.dbapi), so the pool discards none but those of another process.

    `create_engine(…, leave_out_checks=True)` omits CHECK constraints, which HerdDB lacks, instead of refusing them.
    """

    name = "herddb"
    driver = "herdkeeper"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    poolclass = pool.QueuePool

    statement_compiler = compilers.StatementCompiler
    ddl_compiler = compilers.DefinitionCompiler
    type_compiler_cls = TypeCompiler
    preparer = compilers.IdentifierPreparer  # type: ignore[assignment]  # SQLAlchemy's stub names the base class
    execution_ctx_cls = compilers.ExecutionContext
    colspecs = {types.DateTime: Moment, types.Date: Day}  # noqa: RUF012 - as SQLAlchemy declares it

    supports_native_boolean = True
    supports_native_decimal = False
    supports_default_values = False
    supports_empty_insert = False
    supports_multivalues_insert = True
    supports_sane_multi_rowcount = True
    div_is_floordiv = False
    supports_sequences = False
    supports_schemas = False
    postfetch_lastrowid = True
    supports_comments = False
    max_identifier_length = 255

    def __init__(self, leave_out_checks: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.leave_out_checks = leave_out_checks

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        return dbapi

    def create_connect_args(self, url: URL) -> tuple[Sequence[str], dict[str, Any]]:
        """Returns the arguments of `herdkeeper.sql.dbapi.connect`. Options are in the URL's query. `ca_file` names a file with
        `authorities`; `host`, once or repeatedly, lists the SQL nodes instead of one host.
        """
        query = dict(url.query)
        hosts = query.pop("host", url.host or "")
        options: dict[str, Any] = {"port": url.port} if url.port else {}
        for name, value in query.items():
            if not isinstance(value, str):
                raise exc.ArgumentError(f"the URL has {name} several times")
            options[name] = _OPTIONS.get(name, str)(value)
        if "ca_file" in options:
            options["authorities"] = Path(options.pop("ca_file")).read_text(encoding="utf-8")
        arguments = (hosts if isinstance(hosts, str) else ",".join(hosts), url.username or "", url.password or "", url.database or "")
        return arguments, options

    def is_disconnect(self, e: Exception, connection: Any, cursor: Any) -> bool:  # noqa: ARG002
        """Whether a child process has it from its parent. Otherwise the connection finds the next leader itself, after `rollback`."""
        return isinstance(e, MadeElsewhere)

    def do_commit(self, dbapi_connection: Any) -> None:
        """SQLAlchemy calls no rollback after a COMMIT that failed. The next user of the connection must not meet that failure.

        Who looks for the rows of a COMMIT without an answer may use any connection of the pool. So it has ended by then, if a leader says
        so in time.
        """
        try:
            dbapi_connection.commit()
        except BaseException as error:
            dbapi_connection.rollback()
            if isinstance(error, dbapi.OutcomeUnknown):
                with suppress(dbapi.DatabaseError):
                    dbapi_connection.ping()
            raise

    def do_ping(self, dbapi_connection: Any) -> bool:
        """For `pool_pre_ping`."""
        dbapi_connection.ping()
        return True

    def get_isolation_level_values(self, dbapi_conn: Any) -> Sequence[Any]:  # noqa: ARG002
        """HerdDB's two levels, and no transaction at all."""
        return (_AUTOCOMMIT, *(level.value for level in dbapi.Isolation))

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        return _AUTOCOMMIT if dbapi_connection.autocommit else dbapi_connection.isolation.value

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        """Of a connection without an open transaction."""
        dbapi_connection.autocommit = level == _AUTOCOMMIT
        if level != _AUTOCOMMIT:
            dbapi_connection.isolation = dbapi.Isolation(level)

    def detect_autocommit_setting(self, dbapi_conn: Any) -> bool:
        return bool(dbapi_conn.autocommit)

    def do_savepoint(self, connection: Connection, name: str) -> None:  # noqa: ARG002
        raise exc.InvalidRequestError("HerdDB has no savepoints, so begin_nested() is not supported")

    def has_table(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> bool:  # noqa: ARG002
        return bool(_rows(connection, "SELECT table_name FROM systables WHERE table_name = :t", t=table_name.lower()))

    def has_index(self, connection: Connection, table_name: str, index_name: str, schema: str | None = None, **kw: Any) -> bool:
        try:
            found = self.get_indexes(connection, table_name, schema, **kw)
        except exc.NoSuchTableError:
            return False
        return any(each["name"] == index_name.lower() for each in found)

    @reflection.cache
    def get_table_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:  # noqa: ARG002
        """All except system tables."""
        return sorted(name for (name,) in _rows(connection, "SELECT table_name FROM systables WHERE systemtable = 'false'"))

    def get_view_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:  # noqa: ARG002
        """HerdDB has none."""
        return []

    @reflection.cache
    def get_columns(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> list[ReflectedColumn]:  # noqa: ARG002
        statement = (
            "SELECT ordinal_position, column_name, type_name, is_nullable, auto_increment, default_value FROM syscolumns "
            "WHERE table_name = :t"
        )
        rows = sorted(_rows(connection, statement, t=table_name.lower()), key=lambda row: row[0])
        if not rows:
            raise exc.NoSuchTableError(table_name)
        return [
            {
                "name": name,
                "type": of_column(kind),
                "nullable": bool(nullable),
                "autoincrement": bool(made),
                "default": None if default_value == "NULL" else default_value,
            }
            for _, name, kind, nullable, made, default_value in rows
            if not (name == _MADE_KEY and made)
        ]

    @reflection.cache
    def get_pk_constraint(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedPrimaryKeyConstraint:
        """Its columns; HerdDB has no name for it."""
        statement = "SELECT ordinal_position, column_name FROM sysindexcolumns WHERE table_name = :t AND index_type = 'pk'"
        columns = [name for _, name in sorted(map(tuple, _rows(connection, statement, t=table_name.lower())))]
        if not columns:
            self._require_table(connection, table_name, schema, **kw)
        return {"constrained_columns": [name for name in columns if name != _MADE_KEY], "name": None}

    @reflection.cache
    def get_foreign_keys(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedForeignKeyConstraint]:
        """With the actions ON DELETE and ON UPDATE, unless NO ACTION."""
        statement = (
            "SELECT child_table_cons_name, child_table_column_name, parent_table_name, parent_table_column_name, on_delete_action, "
            "on_update_action, ordinal_position FROM sysforeignkeys WHERE child_table_name = :t"
        )
        rows = sorted(_rows(connection, statement, t=table_name.lower()), key=lambda row: (row[0], row[6]))
        if not rows:
            self._require_table(connection, table_name, schema, **kw)
        found: list[ReflectedForeignKeyConstraint] = []
        for name, columns in groupby(rows, key=lambda row: row[0]):
            parts = list(columns)
            actions = {"ondelete": _ACTIONS.get(parts[0][4]), "onupdate": _ACTIONS.get(parts[0][5])}
            found.append(
                {
                    "name": name,
                    "constrained_columns": [part[1] for part in parts],
                    "referred_schema": None,
                    "referred_table": parts[0][2],
                    "referred_columns": [part[3] for part in parts],
                    "options": {key: action for key, action in actions.items() if action},
                }
            )
        return found

    @reflection.cache
    def get_indexes(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> list[ReflectedIndex]:
        """All except the primary key. A unique constraint is a unique index in HerdDB."""
        statement = (
            "SELECT index_name, column_name, `unique`, ordinal_position FROM sysindexcolumns WHERE table_name = :t AND index_type <> 'pk'"
        )
        rows = sorted(_rows(connection, statement, t=table_name.lower()), key=lambda row: (row[0], row[3]))
        if not rows:
            self._require_table(connection, table_name, schema, **kw)
        found: list[ReflectedIndex] = []
        for name, columns in groupby(rows, key=lambda row: row[0]):
            parts = list(columns)
            found.append({"name": name, "column_names": [part[1] for part in parts], "unique": bool(parts[0][2])})
        return found

    def get_unique_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedUniqueConstraint]:
        indexes = self.get_indexes(connection, table_name, schema, **kw)
        return [
            {"name": each["name"], "column_names": [str(name) for name in each["column_names"]], "duplicates_index": each["name"]}
            for each in indexes
            if each["unique"]
        ]

    def get_check_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedCheckConstraint]:
        """HerdDB has none."""
        self._require_table(connection, table_name, schema, **kw)
        return []

    def _require_table(self, connection: Connection, table_name: str, schema: str | None, **kw: Any) -> None:
        if not self.has_table(connection, table_name, schema, **kw):
            raise exc.NoSuchTableError(table_name)


def _flag(value: str) -> bool:
    if value.lower() not in _FLAGS:
        raise exc.ArgumentError(f"the URL has {value!r} where it must be one of {', '.join(_FLAGS)}")
    return _FLAGS[value.lower()]


_FLAGS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False, "1": True, "0": False}


_OPTIONS: dict[str, Any] = {
    "autocommit": _flag,
    "tls": _flag,
    "timeout": float,
    "connect_timeout": float,
    "failover_timeout": float,
}
"""Parsers of a URL's options; all others are text."""


def _rows(connection: Connection, statement: str, **parameters: str) -> list[Any]:
    """Unordered: HerdDB without herdkeeper sorts by the wrong columns."""
    return list(connection.execute(text(statement), parameters))
