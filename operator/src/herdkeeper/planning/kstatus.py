"""The conditions Reconciling and Stalled, as kstatus reads them: Flux, `kubectl apply --wait` of kpt and others judge resources by them.

kstatus (sigs.k8s.io/cli-utils/pkg/kstatus) takes a resource with Stalled=True for Failed, one with Reconciling=True for InProgress, and one
with neither for what its Ready says. Both are true of something abnormal, and are not there otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

from herdkeeper.api.resource import Resource
from herdkeeper.planning.summary import Health
from herdkeeper.shared.conditions import RECONCILING, STALLED, condition
from herdkeeper.shared.reason import Bearing, Reason


def kstatus_conditions(resource: Resource, ready: Health, progressing: Health) -> Mapping[str, Health]:
    """At most one of the two, by its type, from the conditions Ready and Progressing that are written beside it.

    A resource that is Ready is Reconciling too while something that it declares is not carried out, such as a new image: who waits for a
    change must not go on between two restarts. Upkeep and repairs of one that is Ready don't count.
    """
    if ready.status != "True" and ready.reason.needs_person:
        return {STALLED: _true(ready)}
    if progressing.reason in (Reason.PAUSED, Reason.PLANNED):
        return {STALLED: _true(progressing)} if ready.status != "True" or _is_unfinished(resource) else {}
    if ready.status != "True":
        return {RECONCILING: _true(ready)}
    if progressing.status == "True" and progressing.reason.bearing is Bearing.UNFINISHED:
        return {RECONCILING: _true(progressing)}
    return {}


def _is_unfinished(resource: Resource) -> bool:
    """Whether a resource that an annotation stops declares something that was not carried out before. Nothing is planned meanwhile, so what
    was known before it was stopped is carried along."""
    before = resource.status
    if before is None or before.observed_generation != resource.metadata.generation:
        return True
    return any(condition(resource, kind) is not None for kind in (RECONCILING, STALLED))


def _true(state: Health) -> Health:
    return Health("True", state.reason, state.message)
