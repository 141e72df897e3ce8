"""Annotations that keep Argo CD from pruning claims and generated Secrets. These outlive their resource and so have no owner.

If Argo CD tracks by label, it claims each ownerless object whose label app.kubernetes.io/instance is an application's name. Ours is the
resource's name, often the same. It prunes objects that the application's manifests lack.
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
"""Syncs don't delete the object, nor does deleting the application, and it never makes the application out of sync. Source: Argo CD, "Sync
Options" and "Diffing Customization"."""

_RETAINED = ("PersistentVolumeClaim", "Secret")


def safe_from_pruning(plan: Plan, objects: Objects) -> Plan:
    """Returns the plan with the annotations on what it creates, and on live objects that lack one. An annotation that a person set
    differently stays.

    The claim templates of a StatefulSet can't carry them: Kubernetes forbids changing those.
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
    """Returns the annotations that an object lacks. Objects with an owner need none: Argo CD leaves them alone."""
    if item["metadata"].get("ownerReferences"):
        return {}
    has = item["metadata"].get("annotations") or {}
    return {name: value for name, value in MARKS.items() if name not in has}
