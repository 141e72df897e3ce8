"""Waits for the archive of a Tablespace's log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from herdkeeper_e2e.conditions import condition
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

ARCHIVING = Limit(300, 1)


def archive_at(item: Object | None, moment: datetime) -> Object | Pending:
    """Returns the Tablespace once its condition shows that everything confirmed at a moment is archived. Pure.

    The last entry of an idle log is confirmed by the next one, and may still be missing.
    """
    if item is None:
        return Pending("there is no such tablespace")
    archived, current = condition(item, "LogArchived"), item["status"].get("archive", {}).get("currentAt")
    if archived is None or archived["status"] != "True" or current is None:
        return Pending(f"{archived}")
    return item if datetime.fromisoformat(current) > moment else Pending(f"archived up to {current}")


def archived_after(kubectl: Kubectl, tablespace: str, moment: datetime, say: Callable[[str], None]) -> Object:
    """Returns the Tablespace once everything confirmed at a moment is archived. Raises WaitError after ARCHIVING."""
    return wait_for(f"the archive of {moment}", lambda: archive_at(kubectl.get("tablespace", tablespace), moment), ARCHIVING, say)
