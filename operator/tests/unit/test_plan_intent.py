"""What differs from the intent is applied; what does not gets no write."""

from __future__ import annotations

from copy import deepcopy

import pytest
from situations import live, objects

from herdkeeper.planning.intent import difference, needed_applies, needed_apply
from herdkeeper.shared.reason import Reason

MANIFEST = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "x", "namespace": "demo", "labels": {"a": "1"}},
    "spec": {
        "replicas": 1,
        "template": {
            "spec": {"containers": [{"name": "c", "volumeMounts": [], "resources": {"limits": {"memory": "1024Mi", "cpu": "1000m"}}}]}
        },
    },
}
KEY = ("StatefulSet", "x")


def stored():
    """As the API server answers it: with defaults and status, and quantities as it writes them."""
    found = deepcopy(live([MANIFEST])[KEY])
    container = found["spec"]["template"]["spec"]["containers"][0]
    container["resources"]["limits"] = {"memory": "1Gi", "cpu": "1"}
    container["terminationMessagePath"] = "/dev/termination-log"
    found["status"] = {"replicas": 1}
    return found


def test_defaults_status_and_another_way_to_write_a_quantity_are_no_difference():
    assert needed_apply(MANIFEST, objects({KEY: stored()})) is None


@pytest.mark.parametrize(
    ("intended", "written"),
    [
        ("1024Ti", "1Pi"),
        ("2048Pi", "2Ei"),
        ("1000", "1k"),
        ("2000000", "2M"),
        ("1.5Gi", "1536Mi"),
        ("99999999999999Ti", "9223372036854775807"),
    ],
)
def test_a_unit_that_only_the_api_server_writes_is_no_difference(intended, written):
    assert difference({"memory": intended}, {"memory": written}) is None


@pytest.mark.parametrize(("intended", "written"), [("1024Ti", "1P"), ("1Pi", "2Pi"), ("1k", "1Ki")])
def test_another_quantity_in_a_unit_of_the_api_servers_is_a_difference(intended, written):
    assert difference({"memory": intended}, {"memory": written}) == "memory"


def test_an_object_that_is_not_there_is_new():
    apply = needed_apply(MANIFEST, objects())
    assert apply is not None
    assert (apply.new, apply.reason) == (True, Reason.CREATING)


def test_another_intent_is_applied_even_where_the_live_object_happens_to_have_it():
    changed = {**MANIFEST, "spec": {**MANIFEST["spec"], "replicas": 2}}
    accidental = stored()
    accidental["spec"]["replicas"] = 2
    assert [apply.new for apply in needed_applies([changed], objects({KEY: accidental}))] == [False]


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("spec.replicas", lambda item: item["spec"].update(replicas=0)),
        ("metadata.labels.a", lambda item: item["metadata"]["labels"].pop("a")),
        ("spec.template.spec.containers", lambda item: item["spec"]["template"]["spec"]["containers"].clear()),
        (
            "spec.template.spec.containers",
            lambda item: item["spec"]["template"]["spec"].update(containers=[{"name": "sidecar"}, {"name": "another"}]),
        ),
        (
            "spec.template.spec.containers[0].resources.limits.memory",
            lambda item: item["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"].update(memory="2Gi"),
        ),
    ],
)
def test_what_somebody_changed_is_found_and_put_back(what, change):
    item = stored()
    change(item)
    assert difference(MANIFEST, item) == what
    assert needed_apply(MANIFEST, objects({KEY: item})) is not None


def test_an_empty_intent_is_met_by_an_absent_field():
    assert difference({"emptyDir": {}, "items": []}, {}) is None


def test_what_an_apply_leaves_in_a_list_is_no_difference_since_it_would_be_applied_for_ever():
    item = stored()
    containers = item["spec"]["template"]["spec"]["containers"]
    containers.insert(0, {"name": "sidecar"})
    containers[1]["volumeMounts"] = [{"name": "more", "mountPath": "/more"}]
    assert needed_apply(MANIFEST, objects({KEY: item})) is None
    containers[1]["resources"]["limits"]["memory"] = "2Gi"
    assert needed_apply(MANIFEST, objects({KEY: item})) is not None


def test_a_list_that_an_apply_replaces_must_have_no_element_of_others():
    assert difference({"spec": {"args": ["a"]}}, {"spec": {"args": ["a", "b"]}}) == "spec.args"
    assert difference({"spec": {"ingress": [{}]}}, {"spec": {"ingress": [{}, {}]}}) == "spec.ingress"
    ports = [{"port": 3181}]
    opened = {"spec": {"ingress": [{"ports": [*ports, {"port": 8080}]}]}}
    assert difference({"spec": {"ingress": [{"ports": ports}]}}, opened) == "spec.ingress[0].ports"
