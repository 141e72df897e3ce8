"""The operator of a Stage reads what is there, whoever wrote it, and asks only once for what nobody wrote to."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kubernetes import client
from kubernetes.dynamic import DynamicClient
from stage import Stage
from unchanged_reads import UnchangedReads, written_to

from herdkeeper.clients.kubernetes import LiveSource
from herdkeeper.shared.names import ObjectKey
from herdkeeper_e2e.control_plane import ControlPlane


def of_the_last_finalizer(stage: Stage, _: ControlPlane) -> None:
    stage.delete("Pod", "held")
    stage.patch("Pod", "held", {"metadata": {"finalizers": None}})


def of_another_client(stage: Stage, plane: ControlPlane) -> None:
    with plane.api_client() as api:
        client.CoreV1Api(api).patch_namespaced_pod("a", stage.namespace, {"metadata": {"labels": {"other": "yes"}}})


def of_a_whole_collection(stage: Stage, plane: ControlPlane) -> None:
    with plane.api_client() as api:
        client.CoreV1Api(api).delete_collection_namespaced_pod(stage.namespace)


WRITES: dict[str, Callable[[Stage, ControlPlane], object]] = {
    "creation": lambda stage, _: stage.of("Pod").create(body=pod("b"), namespace=stage.namespace),
    "patch": lambda stage, _: stage.patch("Pod", "a", {"metadata": {"labels": {"some": "no"}}}),
    "status": lambda stage, _: stage.set_status("Pod", "a", {"phase": "Running"}),
    "deletion": lambda stage, _: stage.delete("Pod", "a"),
    "last finalizer": of_the_last_finalizer,
    "another client": of_another_client,
    "collection": of_a_whole_collection,
}


def pod(name: str) -> dict[str, object]:
    metadata = {"name": name, "labels": {"some": "yes"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "server", "image": "server:1"}]}}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_what_was_written_is_read_anew(
    dynamic: DynamicClient, control_plane: ControlPlane, namespace: str, write: Callable[[Stage, ControlPlane], object]
) -> None:
    stage, reads, live = Stage(dynamic, namespace), UnchangedReads(dynamic), LiveSource(dynamic)
    stage.of("Pod").create(body=pod("a"), namespace=namespace)
    stage.of("Pod").create(body=pod("held"), namespace=namespace)
    stage.patch("Pod", "held", {"metadata": {"finalizers": ["example.org/held"]}})

    def seen(source: UnchangedReads | LiveSource) -> list[object]:
        selected = source.select("v1", "Pod", namespace, {"some": "yes"})
        return [selected, *(source.get("v1", "Pod", ObjectKey(namespace, name)) for name in ("a", "b", "held"))]

    before = seen(reads)
    assert before == seen(live)
    write(stage, control_plane)
    assert seen(reads) == seen(live) != before


def test_what_nobody_wrote_to_is_asked_for_once_and_no_reader_sees_what_another_changed(
    dynamic: DynamicClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = UnchangedReads(dynamic)
    Stage(dynamic, namespace).of("Pod").create(body=pod("a"), namespace=namespace)
    first = reads.select("v1", "Pod", namespace, {})
    first[0]["metadata"]["name"] = "changed"
    monkeypatch.setattr(LiveSource, "select", None)
    assert [each["metadata"]["name"] for each in reads.select("v1", "Pod", namespace, {})] == ["a"]


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/api/v1/namespaces/one/pods/a/status", ("pods", "a")),
        ("/api/v1/namespaces/one/pods", ("pods", "")),
        ("/api/v1/nodes/a", ("nodes", "a")),
        ("/api/v1/namespaces/one", ("namespaces", "one")),
        ("/apis/apps/v1/namespaces/one/statefulsets/a", ("statefulsets", "a")),
        ("/apis/storage.k8s.io/v1/storageclasses", ("storageclasses", "")),
    ],
)
def test_a_path_tells_what_is_written_to(path: str, place: tuple[str, str]) -> None:
    assert written_to(path) == place
