"""Whether a resource is paused."""

from __future__ import annotations

from herdkeeper.api.resource import ObjectMeta
from herdkeeper.shared import names


def paused_by(metadata: ObjectMeta) -> str | None:
    """Returns the annotation that pauses a resource, or None."""
    return next((each for each in (names.PAUSED_ANNOTATION, names.PLAN_ANNOTATION) if stops(metadata, each)), None)


def stops(metadata: ObjectMeta, annotation: str) -> bool:
    """Returns whether one of these annotations is in force: by any value but `false`, so that a mistyped one lets no change through."""
    return metadata.annotations.get(annotation, "false") != "false"
