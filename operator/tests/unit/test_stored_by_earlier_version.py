"""What an API server stored under an earlier version is read by this one: every field, as it was (`herdkeeper_e2e.stored_resources`)."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from situations import with_status
from test_examples import refusals

from herdkeeper.api import KINDS, Checkpoint, ReplicationAudit
from herdkeeper.api.resource import Resource
from herdkeeper.clients.kubernetes import parsed
from herdkeeper.planning.status import refused_status
from herdkeeper_e2e.control_plane import REPOSITORY
from herdkeeper_e2e.stored_resources import REMOVED, paths, paths_of_schema, read_today, stored_resources, with_names

KIND_OF = {kind.KIND: kind for kind in KINDS}
STORED = stored_resources()
EVERY = pytest.mark.parametrize(
    ("version", "document"), STORED, ids=lambda part: part if isinstance(part, str) else f"{part['kind']}-{part['metadata']['name']}"
)


@EVERY
def test_every_field_of_a_stored_resource_is_read_with_its_value(version, document):
    found = parsed(KIND_OF[document["kind"]], read_today(version, document))
    assert isinstance(found, Resource)
    assert (found.ignored, found.unread) == ((), {})
    read = found.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert {name: read[name] for name in ("spec", "status")} == {name: read_today(version, document)[name] for name in ("spec", "status")}


@EVERY
def test_a_removed_field_is_told_and_hides_no_other(version, document):
    removed = paths(document) & set(REMOVED.get(version, {}).get(document["kind"], ()))
    found = parsed(KIND_OF[document["kind"]], document)
    assert isinstance(found, Resource)
    assert set(found.ignored) == {path for path in removed if path.startswith("spec.")}
    assert set(found.unread) == {path.split(".")[1] for path in removed if path.startswith("status.")}


def test_each_field_that_is_named_as_removed_was_stored():
    for version, kinds in REMOVED.items():
        for kind, removed in kinds.items():
            assert set(removed) <= had(kind, version)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.KIND)
def test_each_field_of_a_kind_is_in_a_stored_resource(kind):
    crd = yaml.load((REPOSITORY / f"crds/{kind.PLURAL}.yaml").read_text(), yaml.CSafeLoader)
    declared = paths_of_schema(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    missing = {path for path in declared - had(kind.KIND) if not path.startswith(NEVER_STORED[kind.KIND])}
    assert missing == set(), "add it to a resource of its version in operator/tests/unit/data/stored"


def had(kind, version=None):
    """The fields that resources of a kind had."""
    return {path for each, document in STORED if document["kind"] == kind and version in (None, each) for path in paths(document)}


NEVER_STORED = {kind.KIND: () for kind in KINDS} | {"ScheduledCheckpoint": ("spec.template.target",)}
"""Fields that are refused in each resource of the kind."""


ELSEWHERE = "../../victim/secrets/s"
NOBODYS = f"{ELSEWHERE!r}: no object can have this name; use small letters, digits, - and ., with a letter or digit at each end"


def read_with_names(version: str, document: dict[str, Any]) -> tuple[Any, set[str]]:
    """A stored resource whose names of objects are of another namespace, as the operator reads it, and where those are."""
    misnamed, places = with_names(read_today(version, document), ELSEWHERE)
    return parsed(KIND_OF[document["kind"]], misnamed), places


@EVERY
def test_a_stored_name_that_no_object_can_have_is_refused_and_the_resource_read(version, document):
    """Each field by whose rule the API server refuses one today: 0.1.0 had no such rule."""
    found, places = read_with_names(version, document)
    assert isinstance(found, Resource)
    assert places
    refused = refusals(found.model_copy(update={"status": None}), [])
    assert {each.sentence for each in refused if each.value == repr(ELSEWHERE)} == {f"{place} is {NOBODYS}" for place in places}
    assert min(places) in refused_status(found, refused, "2026-01-01T00:00:00Z")["message"]


@pytest.mark.parametrize("kind", [Checkpoint, ReplicationAudit], ids=lambda kind: kind.KIND)
@pytest.mark.parametrize(
    ("status", "refused"),
    [
        ({"phase": "Pending"}, True),
        ({"phase": "Running", "job": "a-job"}, False),
        ({"phase": "Paused", "job": "a-job"}, False),
        ({"phase": "Succeeded", "job": "a-job"}, False),
        ({"phase": "Failed"}, False),
    ],
    ids=lambda value: value.get("phase") if isinstance(value, dict) else None,
)
def test_a_run_that_began_before_is_followed_to_its_end_whatever_its_names(kind, status, refused):
    """Its schedule waits for the end."""
    version, document = next((version, each) for version, each in STORED if each["kind"] == kind.KIND)
    found, _ = read_with_names(version, document)
    assert bool(refusals(with_status(found, **status), [])) is refused
