"""Volume claims and generated Secrets are safe from a GitOps tool that prunes; nothing that we make looks like its own."""

from __future__ import annotations

from typing import Any

import pytest
import test_build_golden
import yaml
from situations import claim, objects

from herdkeeper.planning.actions import Annotate, Apply, Create, Plan
from herdkeeper.planning.pruning import MARKS, safe_from_pruning
from herdkeeper.shared.reason import Reason

Json = dict[str, Any]


def made() -> list[Json]:
    """All that the operator makes, and the claims that Kubernetes makes of its StatefulSets' templates."""
    manifests = [yaml.safe_load(yaml.safe_dump(item)) for world in test_build_golden.built().values() for item in world]
    return [*manifests, *(claimed for manifest in manifests for claimed in templates(manifest))]


def templates(manifest: Json) -> list[Json]:
    selector = manifest["spec"]["selector"].get("matchLabels", {}) if manifest["kind"] == "StatefulSet" else {}
    found = []
    for template in manifest.get("spec", {}).get("volumeClaimTemplates", []):
        metadata = {**template["metadata"], "labels": {**(template["metadata"].get("labels") or {}), **selector}}
        found.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", **template, "metadata": metadata})
    return found


EVERY = made()


def prunes(item: Json, application: str) -> bool:
    """Whether Argo CD, tracking by label, deletes a live object that the application's manifests don't have. Sources: gitops-engine, which
    looks at objects without owners only, and at the option on the live object; Argo CD, "Resource Tracking"."""
    metadata = item["metadata"]
    tracked = (metadata.get("labels") or {}).get("app.kubernetes.io/instance") == application and not metadata.get("ownerReferences")
    options = (metadata.get("annotations") or {}).get("argocd.argoproj.io/sync-options", "")
    return tracked and "Prune=false" not in [option.strip() for option in options.split(",")]


def as_made(manifest: Json) -> Json:
    """What is there of a manifest once the operator has looked at it again."""
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    found = {**manifest, "metadata": {**manifest["metadata"], "uid": "u"}}
    for action in safe_from_pruning(Plan(), objects({(kind, name): found})).actions:
        assert isinstance(action, Annotate)
        annotations = {**(found["metadata"].get("annotations") or {}), **action.annotations}
        found = {**found, "metadata": {**found["metadata"], "annotations": annotations}}
    return found


def instance(item: Json) -> str:
    return str((item["metadata"].get("labels") or {}).get("app.kubernetes.io/instance"))


@pytest.mark.parametrize("manifest", EVERY, ids=lambda item: f"{item['kind']} {item['metadata']['name']}")
def test_argo_cd_prunes_nothing_that_the_operator_made_in_an_application_with_the_resources_name(manifest: Json):
    assert not prunes(as_made(manifest), instance(manifest))


def test_without_the_marks_it_would_prune_volumes_and_passwords():
    assert {item["kind"] for item in EVERY if prunes(item, instance(item))} == {"PersistentVolumeClaim", "Secret"}


def test_no_object_looks_like_the_tools_own_because_its_resource_is(monkeypatch: pytest.MonkeyPatch):
    """By the marks that Argo CD and Flux leave on what they applied."""
    marks = {
        "labels": {
            "app.kubernetes.io/instance": "of-the-tool",
            "kustomize.toolkit.fluxcd.io/name": "of-the-tool",
            "helm.toolkit.fluxcd.io/name": "of-the-tool",
        },
        "annotations": {"argocd.argoproj.io/tracking-id": "of-the-tool:herdkeeper.io/Tablespace:demo/quick"},
    }
    monkeypatch.setattr(test_build_golden, "META", {**test_build_golden.META, **marks})
    assert [item for item in made() if "of-the-tool" in str(item)] == []


def test_an_object_that_holds_data_is_created_with_the_marks_and_a_live_one_gets_those_that_it_lacks():
    new = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "new", "annotations": {"a": "b"}}}
    config = Apply({"kind": "ConfigMap", "metadata": {"name": "c"}}, new=True, reason=Reason.CREATING)
    live = objects(claim("old"), claim("half", **{"argocd.argoproj.io/sync-options": "Prune=confirm"}), claim("marked", **MARKS))
    created, applied, *marking = safe_from_pruning(Plan((Create(new), config)), live).actions
    assert created.manifest["metadata"]["annotations"] == {"a": "b", **MARKS}
    assert applied == config
    assert {action.name: action.annotations for action in marking} == {
        "old": MARKS,
        "half": {"argocd.argoproj.io/compare-options": "IgnoreExtraneous"},
    }


def test_an_object_that_goes_with_its_owner_or_is_going_gets_no_mark():
    owned, going = claim("owned"), claim("going")
    owned["PersistentVolumeClaim", "owned"]["metadata"]["ownerReferences"] = [{"uid": "u"}]
    going["PersistentVolumeClaim", "going"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert safe_from_pruning(Plan(), objects(owned, going)).actions == ()
