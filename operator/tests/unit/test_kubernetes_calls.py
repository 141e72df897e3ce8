"""What is asked of the API server: never without a limit, and the same news is told once and counted."""

from __future__ import annotations

import inspect
import json
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.client import ApiException
from situations import quickstart, with_status
from urllib3.exceptions import ConnectTimeoutError, MaxRetryError

from herdkeeper.api.resource import API_VERSION
from herdkeeper.clients.kubernetes import ANSWER_SECONDS, LiveSource
from herdkeeper.clients.kubernetes_writer import APPLY_PATCH, MERGE_PATCH, ChangedAtOnceError, KubernetesWriter, RefusedError
from herdkeeper.planning.actions import Apply, SetAuthority, deletions
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.reason import Reason


class Client:
    """An API server that has nothing but the events that were posted, and remembers how long each answer was waited for."""

    def __init__(self) -> None:
        self.limits: list[Any] = []
        self.bodies: list[dict[str, Any]] = []
        self.events: dict[str, dict[str, Any]] = {}
        self.resources = SimpleNamespace(get=lambda **_: SimpleNamespace(get=self.get, path=lambda **key: f"/{key.get('name', '')}"))

    def get(self, name: str | None = None, _request_timeout: Any = None, **_: Any) -> Any:
        self.limits.append(_request_timeout)
        if name in self.events:
            return self.events[name]
        if name is None:
            return {"items": []}
        raise ApiException(status=404)

    def request(self, verb: str, path: str, body: Any = None, _request_timeout: Any = None, **_: Any) -> Any:
        self.limits.append(_request_timeout)
        if verb == "get":
            return {"items": [], "metadata": {"resourceVersion": "1"}}
        self.bodies.append(body)
        name = body.get("metadata", {}).get("name") or path.removeprefix("/")
        if verb == "post" and name in self.events:
            raise ApiException(status=409)
        self.events[name] = {**self.events.get(name, {}), **body}
        return {"kind": "Status"}


READS = {
    "get": ("v1", "Pod", ObjectKey("demo", "a")),
    "get_recent": ("v1", "Node", ObjectKey("", "a")),
    "select": ("v1", "Pod", "demo", {}),
    "versions": ("v1", "Pod", None, "a=b"),
}


@pytest.mark.parametrize("name", [name for name, _ in inspect.getmembers(LiveSource, inspect.isfunction) if not name.startswith("_")])
def test_no_read_waits_for_ever(name):
    client = Client()
    getattr(LiveSource(client), name)(*READS[name])
    assert client.limits == [ANSWER_SECONDS] * len(client.limits) != []


def test_an_event_that_the_api_server_does_not_answer_stops_nothing():
    class Silent(Client):
        def request(self, verb: str, path: str, **arguments: Any) -> Any:
            super().request(verb, path, **arguments)
            raise MaxRetryError(None, path, ConnectTimeoutError("no answer"))  # type: ignore[arg-type] - without a pool

    client = Silent()
    KubernetesWriter(client).event(quickstart("ZooKeeperCluster"), "Updating", "its pods are restarted", "Normal")
    assert len(client.bodies) == 1


def test_a_step_of_an_authority_leaves_no_entry_of_an_earlier_state():
    """Not even one that a restore wrote, and that server-side apply would keep as another program's."""
    client = Client()
    metadata = {"namespace": "demo", "name": "zk-zookeeper-authority", "resourceVersion": "7"}
    data = {"generation": "Mg==", "signing.crt": "YQ==", "signing.key": "Yg=="}
    KubernetesWriter(client).set_authority(SetAuthority({"kind": "Secret", "metadata": metadata, "data": data}, "a step"))
    (body,) = client.bodies
    gone = dict.fromkeys(("following.crt", "following.key", "leaving.crt", "distrusted.crt", "everywhere-since"))
    assert (body["data"], body["metadata"]["resourceVersion"]) == ({**data, **gone}, "7")


def test_what_the_api_server_keeps_otherwise_than_it_was_applied_is_told_by_its_field():
    """A mutating webhook may name another registry. It does so at each apply, for ever."""

    class Mutating(Client):
        def request(self, verb: str, path: str, **arguments: Any) -> Any:
            super().request(verb, path, **arguments)
            applied = json.loads(json.dumps(arguments["body"]))
            applied["metadata"] |= {"uid": "a-uid", "resourceVersion": "7"}
            applied["spec"]["containers"][0]["image"] = self.image or applied["spec"]["containers"][0]["image"]
            return applied

    client = Mutating()
    metadata = {"namespace": "demo", "name": "zk"}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "a", "image": "herdkeeper/a:1"}]}}
    client.image = None
    KubernetesWriter(client).apply(Apply(manifest, False, Reason.UPDATING))
    client.image = "mirror/a:1"
    with pytest.raises(ChangedAtOnceError, match=r"^spec\.containers\[0\]\.image of Pod zk is not as it was just applied"):
        KubernetesWriter(client).apply(Apply(manifest, False, Reason.UPDATING))


@pytest.mark.parametrize(("intent_is_invalid", "written"), [(False, [APPLY_PATCH, MERGE_PATCH, MERGE_PATCH, APPLY_PATCH]), (True, None)])
def test_an_intent_that_is_invalid_only_beside_what_somebody_changed_is_written_over_it(intent_is_invalid, written):
    """Such as a port of the same name. The update owns nothing then: a later apply could not take away what it wrote."""
    mine, by_update = {"manager": "herdkeeper", "operation": "Apply"}, {"manager": "herdkeeper", "operation": "Update"}

    class Changed(Client):
        def request(self, verb: str, path: str, **arguments: Any) -> Any:
            super().request(verb, path, **arguments)
            kinds.append(arguments["content_type"])
            if (arguments["content_type"] == APPLY_PATCH and len(kinds) == 1) or intent_is_invalid:
                refused = ApiException(status=422)
                refused.body = json.dumps({"message": f"invalid {arguments['content_type']}"})
                raise refused
            return {**manifest, "metadata": {**metadata, "uid": "a-uid", "resourceVersion": "7", "managedFields": [mine, by_update]}}

    kinds: list[str] = []
    client, metadata = Changed(), {"namespace": "demo", "name": "zk"}
    manifest = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"name": "client", "port": 2181}]}}
    writer = KubernetesWriter(client)
    if written is None:
        with pytest.raises(RefusedError, match="invalid application/apply-patch"):
            writer.apply(Apply(manifest, False, Reason.UPDATING))
        return
    writer.apply(Apply(manifest, False, Reason.UPDATING))
    assert kinds == written
    assert client.bodies[1:3] == [manifest, {"metadata": {"managedFields": [mine]}}]


def test_a_status_field_that_another_program_wrote_does_not_stay():
    """Such as a restore of a backup with its status: server-side apply leaves alone what another program owns."""

    class Restored(Client):
        def request(self, verb: str, path: str, **arguments: Any) -> Any:
            super().request(verb, path, **arguments)
            metadata = {"namespace": "demo", "name": "zk", "uid": "uid-zk", "resourceVersion": "7"}
            status = {"plaintextNeededBy": "nobody", "newer": 1, **arguments["body"]["status"]}
            return {"apiVersion": API_VERSION, "kind": "ZooKeeperCluster", "metadata": metadata, "status": status}

    client, cluster = Restored(), with_status(quickstart("ZooKeeperCluster"), plaintext_needed_by="nobody", voters=3)
    KubernetesWriter(client).write_status(cluster, {"voters": 3})
    assert [body["status"] for body in client.bodies] == [{"voters": 3}, {"plaintextNeededBy": None}]
    client.bodies.clear()
    KubernetesWriter(client).write_status(cluster, {"plaintextNeededBy": "nobody", "voters": 3})
    assert len(client.bodies) == 1


def test_neither_a_condition_nor_a_part_of_a_field_that_another_program_wrote_stays():
    """Else kstatus says of a restored resource that it is stalled, for as long as it exists."""
    ready, stalled = {"type": "Ready", "status": "True"}, {"type": "Stalled", "status": "True"}
    begun = {"since": "2026-01-01T00:00:00Z"}

    class Restored(Client):
        def request(self, verb: str, path: str, **arguments: Any) -> Any:
            super().request(verb, path, **arguments)
            metadata = {"namespace": "demo", "name": "zk", "uid": "uid-zk", "resourceVersion": "7"}
            status = {"conditions": [stalled, ready], "fullCheck": {**begun, "lastMissedTime": "2030-01-01T00:00:00Z"}}
            return {"apiVersion": API_VERSION, "kind": "ZooKeeperCluster", "metadata": metadata, "status": status}

    client = Restored()
    KubernetesWriter(client).write_status(quickstart("ZooKeeperCluster"), {"conditions": [ready], "fullCheck": begun})
    assert client.bodies[1]["status"] == {"conditions": [ready], "fullCheck": {"lastMissedTime": None}}


def test_definitions_that_lack_a_field_of_the_status_get_the_rest_of_it_and_it_is_told():
    """They may be older than the operator, where the chart does not bring them. An earlier status would go on being believed."""

    class Older(Client):
        def request(self, verb: str, path: str, **arguments: Any) -> Any:
            super().request(verb, path, **arguments)
            if arguments.get("content_type") == APPLY_PATCH:
                refused = ApiException(status=500)
                refused.body = json.dumps({"message": "failed to create typed patch object: .status.newer: field not declared in schema"})
                raise refused
            metadata = {"namespace": "demo", "name": "zk", "uid": "uid-zk", "resourceVersion": "7"}
            return {"apiVersion": API_VERSION, "kind": "ZooKeeperCluster", "metadata": metadata, "status": {"voters": 3, "leader": "a"}}

    client, cluster = Older(), with_status(quickstart("ZooKeeperCluster"), leader="a")
    KubernetesWriter(client).write_status(cluster, {"voters": 3, "newer": 1})
    _, merged, event, removal = client.bodies
    assert merged["status"] == {"voters": 3, "newer": 1}
    assert (event["reason"], event["type"]) == ("FieldsIgnored", "Warning")
    assert "the custom resource definitions are older than this operator" in event["message"]
    assert ".status.newer: field not declared in schema" in event["message"]
    assert removal["status"] == {"leader": None}


def test_a_status_that_a_conflict_refuses_is_an_error_unless_its_resource_is_gone():
    """Nothing was written, so no watch has the resource looked at again."""

    class Contested(Client):
        def request(self, verb: str, path: str, **arguments: Any) -> Any:
            raise ApiException(status=409)

    client, cluster = Contested(), quickstart("ZooKeeperCluster")
    client.events[cluster.metadata.name] = {"metadata": {"uid": cluster.metadata.uid}}
    with pytest.raises(RefusedError):
        KubernetesWriter(client).write_status(cluster, {"voters": 3})
    client.events[cluster.metadata.name] = {"metadata": {"uid": "that of the next one of this name"}}
    KubernetesWriter(client).write_status(cluster, {"voters": 3})
    client.events.clear()
    KubernetesWriter(client).write_status(cluster, {"voters": 3})


def test_the_same_news_is_one_event_that_is_counted():
    client = Client()
    resource, writer = quickstart("HerdDBCluster"), KubernetesWriter(client)
    for message in ("no answer", "no answer", "refused", "no answer"):
        writer.event(resource, "ActionFailed", message, "Warning")
    assert sorted((event["message"], event["count"]) for event in client.events.values()) == [("no answer", 3), ("refused", 1)]
    assert all(json.dumps(event["involvedObject"]["uid"]) for event in client.events.values())
    assert client.limits == [ANSWER_SECONDS] * len(client.limits)


@pytest.mark.parametrize("reason", [Reason.QUORUM_LOST, Reason.NODE_LOST])
def test_what_only_a_person_can_mend_is_told_as_that(reason):
    assert reason.needs_person


@pytest.mark.parametrize(
    ("kind", "preconditions"),
    [
        ("PersistentVolumeClaim", {"uid": "its-uid", "resourceVersion": "77"}),
        ("Secret", {"uid": "its-uid", "resourceVersion": "77"}),
        ("StatefulSet", {"uid": "its-uid"}),
    ],
)
def test_what_holds_data_is_deleted_only_as_it_was_read(kind, preconditions):
    client = Client()
    item = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "uid": "its-uid", "resourceVersion": "77"}}
    (action,) = deletions([item], Reason.DRAINED)
    KubernetesWriter(client).delete("demo", action)
    assert client.bodies[-1]["preconditions"] == preconditions
