"""HerdDB's dialect of SQL: Apache Calcite parses queries and changes, JSqlParser definitions."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exc, schema
from sqlalchemy.engine.default import DefaultExecutionContext
from sqlalchemy.sql import compiler, ddl, elements, selectable


class IdentifierPreparer(compiler.IdentifierPreparer):
    """Quotes every name: Calcite reserves some 300 words, including `value`, `result` and `user`. HerdDB ignores case."""

    def __init__(self, dialect: Any) -> None:
        super().__init__(dialect, initial_quote="`", final_quote="`")

    def _requires_quotes(self, value: str) -> bool:  # noqa: ARG002 - none is left out
        return True

    def _escape_identifier(self, value: str) -> str:
        """A name can't end its quotes: of HerdDB's parsers only Calcite knows a doubled one."""
        if "`" in value:
            raise exc.CompileError(f"the name {value!r} has a `, which HerdDB's names can't have: choose another one")
        return value


class StatementCompiler(compiler.SQLCompiler):
    """Queries and changes."""

    def limit_clause(self, select: selectable.GenerativeSelect, **kw: Any) -> str:
        """OFFSET works only after LIMIT."""
        limit, offset = select._limit_clause, select._offset_clause
        text = ""
        if limit is not None or offset is not None:
            text += "\n LIMIT " + (self.process(limit, **kw) if limit is not None else str((1 << 31) - 1))
        if offset is not None:
            text += " OFFSET " + self.process(offset, **kw)
        return text


class DefinitionCompiler(compiler.DDLCompiler):
    """Tables and indexes."""

    def get_column_specification(self, column: schema.Column[Any], **kw: Any) -> str:  # noqa: ARG002
        """Name, type, NOT NULL, auto_increment and default, in this order."""
        parts = [self.preparer.format_column(column), self.dialect.type_compiler_instance.process(column.type, type_expression=column)]
        if not column.nullable and not column.primary_key:
            parts.append("NOT NULL")
        if column is column.table._autoincrement_column and column.server_default is None:
            parts.append("auto_increment")
        default = self.get_column_default_string(column)
        if default is not None:
            parts.append(f"DEFAULT {default}")
        return " ".join(parts)

    def render_default_string(self, default: Any) -> str:
        """HerdDB stores a default as it is written, so a quote in it would be there twice. That of a reflected table is SQL already."""
        text = default.value if isinstance(default, elements.BindParameter) else default
        if isinstance(text, str) and "'" in text:
            raise exc.CompileError(f"HerdDB would store the quote in the default {text!r} twice: use default= instead of server_default=")
        return super().render_default_string(default)

    def visit_unique_constraint(self, constraint: schema.UniqueConstraint, **kw: Any) -> str:  # noqa: ARG002
        """A unique index, which must have a name."""
        columns = list(constraint.columns)
        if not columns:
            return ""
        name = self.preparer.quote(str(constraint.name or _name(constraint, "unique")))
        return f"UNIQUE KEY {name} ({', '.join(self.preparer.quote(column.name) for column in columns)})"

    def visit_foreign_key_constraint(self, constraint: schema.ForeignKeyConstraint, **kw: Any) -> str:
        """It gets a name: without one HerdDB itself closes the connection."""
        if constraint.referred_table is constraint.table and not constraint.use_alter:
            raise exc.CompileError(
                f"HerdDB can't create a foreign key from the table {constraint.table.name} to itself together with the table: set "
                "use_alter=True"
            )
        text = super().visit_foreign_key_constraint(constraint, **kw)
        if constraint.name is not None:
            return text
        return f"CONSTRAINT {self.preparer.quote(_name(constraint, 'fk'))} {text}"

    def visit_check_constraint(self, constraint: schema.CheckConstraint, **kw: Any) -> str:  # noqa: ARG002
        """Not supported. SQLAlchemy omits a table's constraint if its text is None."""
        self._refuse_checks()
        return None  # type: ignore[return-value]

    def visit_column_check_constraint(self, constraint: schema.CheckConstraint, **kw: Any) -> str:  # noqa: ARG002
        """The same for a column, where an empty text omits it."""
        self._refuse_checks()
        return ""

    def _refuse_checks(self) -> None:
        if not getattr(self.dialect, "leave_out_checks", False):
            raise exc.CompileError("HerdDB has no CHECK constraints: remove it, or use create_engine(…, leave_out_checks=True)")

    def visit_drop_index(self, drop: ddl.DropIndex, **kw: Any) -> str:  # noqa: ARG002
        """Names of indexes belong to the tablespace."""
        return f"DROP INDEX {self.preparer.quote(str(drop.element.name))}"


def _name(constraint: schema.ColumnCollectionConstraint, kind: str) -> str:
    return "_".join((str(constraint.table.name), kind, *(column.name for column in constraint.columns)))


class ExecutionContext(DefaultExecutionContext):
    """Requests generated keys if SQLAlchemy needs them, and drops each table in its own transaction."""

    def pre_exec(self) -> None:
        compiled = self.compiled
        if self.isinsert and not self.executemany and isinstance(compiled, compiler.SQLCompiler) and compiled.postfetch_lastrowid:
            self.cursor.returns_key = True  # type: ignore[attr-defined]
        self._commit_beside_a_drop()

    def post_exec(self) -> None:
        self._commit_beside_a_drop()

    def _commit_beside_a_drop(self) -> None:
        """HerdDB refuses to drop a table that another one refers to, even if that one was dropped in the same transaction."""
        if self.isddl and isinstance(self.compiled, compiler.DDLCompiler) and isinstance(self.compiled.statement, ddl.DropTable):
            self.cursor.connection.commit()
