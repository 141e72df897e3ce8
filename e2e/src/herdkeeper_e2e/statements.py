"""SQL text for tables: HerdDB's dialect (DDL by JSQLParser, DML by Calcite, both with back-ticks around names)."""

from __future__ import annotations

from herdkeeper_e2e.nycflights import Table


def create_table(table: Table) -> str:
    """`CREATE TABLE IF NOT EXISTS`. Every name is quoted, since `year` or `hour` are words of the grammar."""
    columns = ", ".join(f"{quoted(column.name)} {column.type.value}" for column in table.columns)
    key = ", ".join(quoted(name) for name in table.primary_key)
    return f"CREATE TABLE IF NOT EXISTS {quoted(table.name)} ({columns}, PRIMARY KEY ({key}))"


def insert(table: Table) -> str:
    """`INSERT` of one row with a parameter per column."""
    names = ", ".join(quoted(column.name) for column in table.columns)
    return f"INSERT INTO {quoted(table.name)} ({names}) VALUES ({', '.join('?' * len(table.columns))})"


def select_by_key(table: Table) -> str:
    """`SELECT` of the key's columns by the primary key."""
    names = ", ".join(quoted(name) for name in table.primary_key)
    condition = " AND ".join(f"{quoted(name)} = ?" for name in table.primary_key)
    return f"SELECT {names} FROM {quoted(table.name)} WHERE {condition}"


def count(table_name: str) -> str:
    """`SELECT COUNT(*)`, the number in a column `n`."""
    return f"SELECT COUNT(*) AS n FROM {quoted(table_name)}"


def quoted(name: str) -> str:
    return f"`{name}`"
