"""Resources that a newer version's schema was applied to, or whose status another version wrote: what can't be read is kept and told."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from situations import EXAMPLES

from herdkeeper.api import KINDS, Checkpoint, HerdDBCluster, Tablespace
from herdkeeper.api.resource import Resource
from herdkeeper.clients.kubernetes import KubernetesReader, LiveSource, Unreadable, parsed
from herdkeeper.planning.actions import Plan
from herdkeeper.planning.refusal import unreadable_refusals
from herdkeeper.planning.status import refused_status, status_document
from herdkeeper.planning.summary import Health, Summary
from herdkeeper.shared.conditions import FIELDS_READ, READY
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper_e2e.defaulting import stored

KIND_OF = {kind.KIND: kind for kind in KINDS}
STATUS = {"uuid": "a-uuid", "replicas": [{"node": "db-herddb-1", "role": "follower", "verdict": "Different"}], "leader": "db-herddb-0"}
NOW = "2026-01-01T00:00:00Z"
WELL = Summary(Health("True", Reason.READY, "all is well"), {"uuid": "a-uuid", "leader": "db-herddb-0"})


def documents() -> list[dict[str, Any]]:
    """Every resource of the examples, as the API server stores it."""
    written = [document for file in sorted(EXAMPLES.glob("*.yaml")) for document in yaml.safe_load_all(file.read_text())]
    return [document_of(stored(document)) for document in written if document and document["kind"] in KIND_OF]


def document_of(resource: Resource) -> dict[str, Any]:
    return {"kind": resource.KIND, **resource.model_dump(mode="json", by_alias=True, exclude_none=True)}


MAPS = ("config", "nodeSelector", "annotations", "labels", "podLabels", "namespaceLabels", "options", "requests", "limits")
"""Fields whose keys are the user's."""


def objects_in(value: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object in a value that has fields of its own, not keys that the user names, with its path."""
    if isinstance(value, dict) and path.rpartition(".")[2] not in MAPS:
        yield path, value
        for name, part in value.items():
            yield from objects_in(part, f"{path}.{name}")
    if isinstance(value, list):
        for number, part in enumerate(value):
            yield from objects_in(part, f"{path}.{number}")


def tablespace(**changes: Any) -> dict[str, Any]:
    (document,) = [each for each in documents() if each["kind"] == "Tablespace"][:1]
    return {**document, **changes}


@pytest.mark.parametrize("document", documents(), ids=lambda document: f"{document['kind']}-{document['metadata']['name']}")
def test_a_field_of_a_newer_version_is_ignored_wherever_it_is_and_told(document):
    plain = parsed(KIND_OF[document["kind"]], document)
    for number, (path, _) in enumerate(objects_in(document["spec"], "spec")):
        newer = copy.deepcopy(document)
        _, holder = list(objects_in(newer["spec"], "spec"))[number]
        if not any(name[:1].islower() for name in holder) and holder:
            continue  # keys that the user names
        holder["ofTomorrow"] = {"deep": 7}
        found = parsed(KIND_OF[document["kind"]], newer)
        assert isinstance(found, Resource), path
        assert (found.spec, found.ignored) == (plain.spec, (f"{path}.ofTomorrow",))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.KIND)
def test_the_status_by_default_of_a_resource_that_nobody_has_looked_at_is_none(kind):
    (document,) = [each for each in documents() if each["kind"] == kind.KIND][:1]
    found = parsed(kind, {**document, "status": {"observedGeneration": -1}})
    assert isinstance(found, Resource)
    assert (found.status, found.unread) == (None, {})
    written = parsed(kind, {**document, "status": {"observedGeneration": -1, "message": "m"}})
    assert isinstance(written, Resource)
    assert written.status.message == "m"


def test_what_the_status_has_of_another_version_is_kept_and_hides_nothing_else():
    found = parsed(Tablespace, tablespace(status={**STATUS, "leader": {"node": "db-herddb-0"}, "ofTomorrow": [7]}))
    assert isinstance(found, Tablespace)
    assert found.status.uuid == "a-uuid"
    assert found.status.replicas[0].verdict == "Different"
    assert found.unread == {"leader": {"node": "db-herddb-0"}, "ofTomorrow": [7]}
    assert found.unread_fields == ("status.leader",)
    document = status_document(found, WELL, Plan(), None, NOW)
    assert (document["leader"], document["ofTomorrow"], document["uuid"]) == ({"node": "db-herddb-0"}, [7], "a-uuid")


def test_the_status_of_a_resource_whose_spec_cant_be_read_stays_as_it_is():
    found = parsed(Tablespace, tablespace(spec={"herdDBRef": {"name": "db"}, "replicas": "two"}, status=STATUS))
    assert isinstance(found, Unreadable)
    document = refused_status(found.rest, unreadable_refusals(found.error), NOW)
    assert {name: document[name] for name in STATUS} == STATUS
    assert "spec.replicas" in document["message"]


def told(resource: Resource) -> str | None:
    conditions = status_document(resource, WELL, Plan(), None, NOW)["conditions"]
    found = next((entry for entry in conditions if entry["type"] == FIELDS_READ), None)
    return None if found is None else f"{found['status']} {found['reason']} {found['message']}"


def test_a_condition_names_what_is_not_read():
    assert told(parsed(Tablespace, tablespace(status=STATUS))) is None
    newer = tablespace(status={**STATUS, "leader": 7})
    newer["spec"]["ofTomorrow"] = 1
    sentence = told(parsed(Tablespace, newer))
    assert sentence is not None
    assert sentence.startswith("False FieldsIgnored")
    assert "spec.ofTomorrow" in sentence
    assert "status.leader" in sentence
    assert "upgrade the operator" in sentence


def test_ready_says_what_it_would_say_without_the_fields():
    newer = tablespace()
    newer["spec"]["ofTomorrow"] = 1
    conditions = status_document(parsed(Tablespace, newer), WELL, Plan(), None, NOW)["conditions"]
    assert next(entry["status"] for entry in conditions if entry["type"] == READY) == "True"


def test_who_must_know_about_each_learns_that_a_field_of_a_status_cant_be_read():
    checkpoint = next(document for document in documents() if document["kind"] == "Checkpoint")
    reader = KubernetesReader(LiveSource(None))
    assert isinstance(reader.models(Checkpoint, [{**checkpoint, "status": {"phase": "Resting"}}]), Unknown)
    assert not isinstance(reader.models(Checkpoint, [{**checkpoint, "status": {"phase": "Succeeded", "ofTomorrow": 7}}]), Unknown)


def test_one_look_parses_a_version_of_a_resource_once():
    found = tablespace()
    first, again, newer = ({**found, "metadata": {**found["metadata"], "resourceVersion": version}} for version in ("7", "7", "8"))
    look = KubernetesReader(LiveSource(None)).over(LiveSource(None))
    assert look.model(Tablespace, again) is look.model(Tablespace, first)
    assert look.model(Tablespace, newer) is not look.model(Tablespace, first)


def test_a_value_that_is_not_allowed_is_refused_as_before():
    cluster = next(document for document in documents() if document["kind"] == "HerdDBCluster")
    assert isinstance(parsed(HerdDBCluster, {**cluster, "spec": {**cluster["spec"], "replicas": "x", "ofTomorrow": 1}}), Unreadable)
