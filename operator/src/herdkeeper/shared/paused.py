"""Whether a resource is paused."""

from __future__ import annotations

from herdkeeper.api.resource import ObjectMeta
from herdkeeper.shared import names


def paused_by(metadata: ObjectMeta) -> str | None:
    """Returns the annotation that pauses a resource, or None."""
    stops = (names.PAUSED_ANNOTATION, names.PLAN_ANNOTATION)
    return next((each for each in stops if metadata.annotations.get(each) == "true"), None)
