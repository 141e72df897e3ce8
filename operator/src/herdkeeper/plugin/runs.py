"""New Checkpoints and ReplicationAudits: names, templates, and waiting for them. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence

from herdkeeper.plugin.request import Outcome
from herdkeeper.plugin.stack_tree import condition
from herdkeeper.shared.objects import Json

MOST_NAME = 40
"""Characters of a resource's name."""


def run_name(of: str, now: datetime.datetime) -> str:
    """Returns the name of a run that is created now: its subject's, shortened if necessary, and the second."""
    suffix = f"{now:-%Y%m%d-%H%M%S}"
    return of[: MOST_NAME - len(suffix)].rstrip("-") + suffix


def templates(schedules: Sequence[Json], runs: Sequence[Json], reference: str, name: str) -> Iterator[Json]:
    """Yields specs that a new run may copy, best first: schedules', then runs', newest first. `reference`: the field with the subject."""
    for schedule in schedules:
        if schedule["spec"]["template"][reference]["name"] == name:
            yield schedule["spec"]["template"]
    for run in sorted(runs, key=lambda item: str(item["metadata"].get("creationTimestamp", "")), reverse=True):
        if run["spec"][reference]["name"] == name:
            yield run["spec"]


def end_of(item: Json) -> Outcome | None:
    """Returns how a run ended, or None. An audit with findings is not a success."""
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
