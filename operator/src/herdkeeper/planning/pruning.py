"""Volume claims and generated Secrets outlive their resource, so they have no owner. Marks keep Argo CD from pruning them.

Argo CD, where it tracks by label, takes each object without an owner for its own whose label app.kubernetes.io/instance is the name of an
application. Ours is the name of the resource, which often is the application's, too. It prunes what the application's manifests don't have.
"""

from __future__ import annotations

from dataclasses import replace

from herdkeeper.planning.actions import Action, Annotate, Create, Plan
from herdkeeper.shared.objects import Json, Objects
from herdkeeper.shared.reason import Reason

MARKS = {
    "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
    "argocd.argoproj.io/compare-options": "IgnoreExtraneous",
}
"""Not deleted by a sync, nor with the application; and no reason to call the application out of sync.
Source: Argo CD, "Sync Options" and "Diffing Customization"."""

_RETAINED = ("PersistentVolumeClaim", "Secret")


def safe_from_pruning(plan: Plan, objects: Objects) -> Plan:
    """The plan, with the marks on what it creates, and then on each live object that lacks one. A mark that a person set otherwise stays.

    The claims in a StatefulSet's template can't get them there: Kubernetes lets nobody change it.
    """
    live = (item for kind in _RETAINED for item in objects.of_kind(kind) if not item["metadata"].get("deletionTimestamp"))
    marking = [
        Annotate(item["kind"], item["metadata"]["name"], item["metadata"]["uid"], missing, Reason.UPDATING)
        for item in live
        if (missing := _missing(item))
    ]
    return replace(plan, actions=(*map(_marked, plan.actions), *marking))


def _marked(action: Action) -> Action:
    if not isinstance(action, Create) or action.manifest["kind"] not in _RETAINED:
        return action
    metadata = action.manifest["metadata"]
    annotations = {**(metadata.get("annotations") or {}), **_missing(action.manifest)}
    if not annotations:
        return action
    return replace(action, manifest={**action.manifest, "metadata": {**metadata, "annotations": annotations}})


def _missing(item: Json) -> dict[str, str | None]:
    """The marks that it lacks; none of what an owner takes along, which Argo CD leaves alone."""
    if item["metadata"].get("ownerReferences"):
        return {}
    has = item["metadata"].get("annotations") or {}
    return {name: value for name, value in MARKS.items() if name not in has}
