"""New Checkpoints and ReplicationAudits: their names, where their files go, and how one waits for them. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence

from herdkeeper.plugin.request import Outcome
from herdkeeper.plugin.stack_tree import condition
from herdkeeper.shared.objects import Json

MOST_NAME = 40
"""Characters of a resource's name."""


def run_name(of: str, now: datetime.datetime) -> str:
    """A name for a run that is made now: that of its subject, shortened where it has to be, and the second."""
    suffix = f"{now:-%Y%m%d-%H%M%S}"
    return of[: MOST_NAME - len(suffix)].rstrip("-") + suffix


def templates(schedules: Sequence[Json], runs: Sequence[Json], reference: str, name: str) -> Iterator[Json]:
    """The specs that a new run may take over, the best first: schedules of the same subject, then its runs, the newest first.

    `reference` is the field that names the subject, e.g. tablespaceRef.
    """
    for schedule in schedules:
        if schedule["spec"]["template"][reference]["name"] == name:
            yield schedule["spec"]["template"]
    for run in sorted(runs, key=lambda item: str(item["metadata"].get("creationTimestamp", "")), reverse=True):
        if run["spec"][reference]["name"] == name:
            yield run["spec"]


def end_of(item: Json) -> Outcome | None:
    """How a run ended; None while it has not. An audit with findings did not end well."""
    status = item.get("status") or {}
    said = str(status.get("message") or "")
    match status.get("phase"):
        case "Succeeded":
            return Outcome(said or "it succeeded", good=not status.get("findingsTotal"))
        case "Failed":
            return Outcome(said or "it failed", good=False)
        case _:
            ready = condition(item, "Ready")
            refused = ready is not None and ready["reason"] == "InvalidSpec"
            return Outcome(f"InvalidSpec: {ready['message']}", good=False) if refused and ready is not None else None
