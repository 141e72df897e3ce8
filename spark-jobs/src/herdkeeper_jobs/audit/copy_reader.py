"""Reads copies: runs the tasks of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper_jobs.audit.schema import HOLDINGS_ARROW
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
