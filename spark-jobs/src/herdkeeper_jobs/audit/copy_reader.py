"""Looking at copies: the tasks of a plan, run wherever."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper_jobs.audit.schema import HOLDINGS_ARROW
from herdkeeper_jobs.copies.plan import AuditBudget, AuditTask, HoldingCheck, plan_tasks

TaskRunner = Callable[[Sequence[AuditTask]], pa.Table]
"""Runs check_copies over tasks, wherever, and gives their holdings (schema.HOLDINGS_ARROW); audit/cli.py gives Spark."""


@dataclass(frozen=True, slots=True)
class CopyReader:
    """How copies are looked at."""

    budget: AuditBudget
    run_tasks: TaskRunner

    def at(self, checks: Sequence[HoldingCheck], addresses: Mapping[str, BookieAddress]) -> pa.Table:
        """The holdings of all checks."""
        tasks = plan_tasks(checks, addresses, self.budget)
        return self.run_tasks(tasks) if tasks else HOLDINGS_ARROW.empty_table()
