"""HerdDB's types. The only one for times is a timestamp in milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import exc, types
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.compiler import GenericTypeCompiler


class Moment(types.DateTime):
    """Without a time zone, values are taken as UTC; with one, they come back in UTC."""

    def bind_processor(self, dialect: Dialect) -> Callable[[datetime | None], datetime | None]:  # noqa: ARG002

        def process(value: datetime | None) -> datetime | None:
            return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value

        return process

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[datetime | None], datetime | None]:  # noqa: ARG002
        """The moment as the application declared it."""
        keeps = self.timezone

        def process(value: datetime | None) -> datetime | None:
            return value if keeps or value is None else value.replace(tzinfo=None)

        return process

    def literal_processor(self, dialect: Dialect) -> Callable[[datetime], str]:  # noqa: ARG002

        def process(value: datetime) -> str:
            at = value if value.tzinfo is None else value.astimezone(UTC)
            if at.microsecond >= 1000:
                raise exc.CompileError(f"{value}: HerdDB leaves out the milliseconds of a literal; use a parameter")
            return f"TIMESTAMP '{at:%Y-%m-%d %H:%M:%S}'"

        return process


class Day(types.Date):
    """Stored as midnight in UTC."""

    def bind_processor(self, dialect: Dialect) -> Callable[[date | None], date | None]:  # noqa: ARG002
        """Also accepts a datetime."""
        return lambda value: value.date() if isinstance(value, datetime) else value

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[datetime | None], date | None]:  # noqa: ARG002
        return lambda value: None if value is None else value.date()

    def literal_processor(self, dialect: Dialect) -> Callable[[date], str]:  # noqa: ARG002
        return lambda value: f"TIMESTAMP '{value:%Y-%m-%d} 00:00:00'"


def _double(compiler: GenericTypeCompiler, type_: Any, **kw: Any) -> str:  # noqa: ARG001
    """HerdDB makes `numeric(10, 0)` an integer, and all others doubles."""
    return "double"


def _timestamp(compiler: GenericTypeCompiler, type_: Any, **kw: Any) -> str:  # noqa: ARG001
    return "timestamp"


def _blob(compiler: GenericTypeCompiler, type_: Any, **kw: Any) -> str:  # noqa: ARG001
    return "blob"


class TypeCompiler(GenericTypeCompiler):
    """HerdDB's type names. It ignores lengths and precisions: texts may be longer, and numbers with decimals are doubles."""

    visit_NUMERIC = visit_DECIMAL = visit_FLOAT = visit_REAL = visit_DOUBLE = visit_DOUBLE_PRECISION = _double  # noqa: N815
    visit_DATE = visit_DATETIME = visit_TIMESTAMP = _timestamp  # noqa: N815
    visit_BINARY = visit_VARBINARY = _blob  # noqa: N815

    def visit_TIME(self, type_: Any, **kw: Any) -> str:  # noqa: ARG002, N802
        raise exc.CompileError("HerdDB has no time of a day: use DateTime, or String")

    def visit_JSON(self, type_: Any, **kw: Any) -> str:  # noqa: ARG002, N802
        raise exc.CompileError("HerdDB has no JSON: use Text, and json.dumps and json.loads")


_BY_NAME: dict[str, type[types.TypeEngine[Any]]] = {
    "string": types.String,
    "long": types.BigInteger,
    "integer": types.Integer,
    "bytearray": types.LargeBinary,
    "timestamp": types.DateTime,
    "double": types.Double,
    "boolean": types.Boolean,
}


def of_column(name: str) -> types.TypeEngine[Any]:
    """Returns the type for HerdDB's `syscolumns.type_name`; NullType for an array of floats."""
    return _BY_NAME.get(name.removesuffix(" not null"), types.NullType)()
