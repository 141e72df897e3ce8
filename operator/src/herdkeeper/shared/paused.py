"""Whether a resource is paused."""

from __future__ import annotations

from collections.abc import Mapping

from herdkeeper.shared import names


def paused_by(annotations: Mapping[str, str]) -> str | None:
    """Returns the annotation that pauses a resource, or None."""
    return next((each for each in (names.PAUSED_ANNOTATION, names.PLAN_ANNOTATION) if stops(annotations.get(each))), None)


def stops(value: str | None) -> bool:
    """Returns whether one of these annotations is in force: by any value but `false`, so that a mistyped one lets no change through."""
    return value is not None and value != "false"
