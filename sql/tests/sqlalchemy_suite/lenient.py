"""The dialect as these tests need it: their tables have CHECK constraints."""

from __future__ import annotations

from typing import Any

from herdkeeper.sql.sqlalchemy_dialect import HerdDBDialect


class LenientDialect(HerdDBDialect):
    """Leaves CHECK constraints out."""

    supports_statement_cache = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(leave_out_checks=True, **kwargs)
