"""HerdDB for SQLAlchemy 2: `herddb+herdkeeper://user:password@host:port/tablespace`. docs/connect.md shows how, and what HerdDB lacks."""

from __future__ import annotations

from herdkeeper.sql.sqlalchemy_dialect.dialect import HerdDBDialect

__all__ = ["HerdDBDialect"]
