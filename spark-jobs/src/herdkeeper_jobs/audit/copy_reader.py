"""Reads copies: runs the tasks of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper_jobs.audit.schema import HOLDINGS_ARROW, holdings_by_ledger
from herdkeeper_jobs.audit.shares import CopiesLostError
from herdkeeper_jobs.copies.holding import Holding
from herdkeeper_jobs.copies.plan import AuditBudget, AuditTask, HoldingCheck, plan_tasks

TaskRunner = Callable[[Sequence[AuditTask]], pa.Table]
"""Runs `check_copies` over tasks and returns their holdings (schema.HOLDINGS_ARROW); audit/cli.py passes Spark's."""


@dataclass(frozen=True, slots=True)
class CopyReader:
    """A budget, and the means to run tasks."""

    budget: AuditBudget
    run_tasks: TaskRunner

    def at(self, checks: Sequence[HoldingCheck], addresses: Mapping[str, BookieAddress]) -> pa.Table:
        """Runs all checks and returns their holdings."""
        tasks = plan_tasks(checks, addresses, self.budget)
        return self.run_tasks(tasks) if tasks else HOLDINGS_ARROW.empty_table()

    def holdings(self, checks: Sequence[HoldingCheck], addresses: Mapping[str, BookieAddress]) -> dict[int, list[Holding]]:
        """As `at`, by ledger. Raises CopiesLostError if not exactly these copies came back."""
        found = holdings_by_ledger(self.at(checks, addresses))
        expected, seen = sum(check.copies for check in checks), sum(holding.copies for own in found.values() for holding in own)
        if seen != expected:
            raise CopiesLostError(f"{expected} copies were to be read again, {seen} came back")
        return found
