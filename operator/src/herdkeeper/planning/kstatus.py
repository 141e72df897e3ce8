"""The conditions Reconciling and Stalled of kstatus (sigs.k8s.io/cli-utils/pkg/kstatus), which Flux and `kubectl apply --wait` of kpt read.

kstatus takes Stalled=True for Failed and Reconciling=True for InProgress. With neither it goes by Ready. Both conditions mark abnormal
states and are absent otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

from herdkeeper.api.resource import Resource
from herdkeeper.planning.summary import Health
from herdkeeper.shared.conditions import RECONCILING, STALLED, condition
from herdkeeper.shared.reason import Bearing, Reason


def kstatus_conditions(resource: Resource, ready: Health, progressing: Health) -> Mapping[str, Health]:
    """Returns at most one of the two conditions, by type, from Ready and Progressing of the same status.

    A Ready resource is also Reconciling while a declared change, such as a new image, is unfinished: a client must not stop waiting between
    two restarts. Upkeep and repairs of a Ready resource don't count.
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
    """Returns whether a paused resource has declared changes that were not finished. Nothing is planned while it is paused, so the last
    known state is kept.
    """
    before = resource.status
    if before is None or before.observed_generation != resource.metadata.generation:
        return True
    return any(condition(resource, kind) is not None for kind in (RECONCILING, STALLED))


def _true(state: Health) -> Health:
    return Health("True", state.reason, state.message)
