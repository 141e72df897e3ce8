"""Each field of each kind's spec gets another valid value on a settled stack, and its old one back (the idea of Acto).

After a change, the resource settles and is as declared, or a condition says why not and what would help. Or the API server refuses it by
field, value and fix. Put back, all is as it was. No pod is restarted that no change of its template asks for, and never two at once.

The normal run takes a tenth of the fields, others each day; TURN=5 takes those of one day, EVERY_FIELD=1 (`make integration-fields`) all.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import DynamicApiError
from played_stack import JOBS, SERVERS, PlayedStack
from stage import Json
from test_reconcile_disturbed import TURN
from test_reconcile_killed import picture

from herdkeeper.engine.result import Outcome
from herdkeeper_e2e.fields_of_crds import SCHEMAS, Leaf, leaves

EVERY_FIELD = os.environ.get("EVERY_FIELD") == "1"
SHARE = 10
ALL = [leaf for kind in SCHEMAS for leaf in leaves(kind)]
NAMES = {kind: name for kind, name, _ in reversed((*SERVERS, *JOBS))}
ONCE = ("Checkpoint", "ReplicationAudit")
"""Kinds that are made anew instead of changed."""

EXCLUDED = {
    "BookKeeperCluster drain": "another bookie comes with a number of its own, so that not all is as before: test_reconcile_drain.py",
}
"""Fields that are not changed here, and why."""

NO_TRACE: dict[str, str] = {
    r"(ZooKeeperCluster|BookKeeperCluster|Tablespace) deletionPolicy": "when the resource is deleted",
    "ZooKeeperCluster allowSingleMember": "when the ensemble shall shrink to one member",
    "BookKeeperCluster rollWithoutSpareBookie": "when bookies are restarted while an ensemble has them all",
    "BookKeeperCluster placement.rackLabel": "when bookies run on nodes with labels",
    "Tablespace failover.hungLeaderSeconds": "when a leader is silent",
    "Tablespace failback": "when the leadership has moved",
    r"Tablespace log\.archive\.retention\.keepWithin": "when something is archived",
    r"Tablespace fullCheck\.(startingDeadlineSeconds|maxWritesStoppedMilliseconds)": "at the next full check",
    r"Tablespace bootstrap\.files\.encryption\..*": "at the next Job of the restore",
    r"Tablespace bootstrap\.job\..*": "at the next Job of the restore",
    r"Scheduled\w+ template\..*": "at the next run",
    r"Scheduled\w+ (startingDeadlineSeconds|failedHistoryLimit|successfulHistoryLimit)": "when a run is late, or expires",
    r"ScheduledCheckpoint retention\..*": "when a run expires",
    r"ScheduledCheckpoint drill\..*": "at the next drill",
    r"ReplicationAudit window\..*": "when its Job has ended",
}
"""Fields of which only the spec tells until something else happens, and what that is."""

TOLD: dict[str, str] = {
    r"BookKeeperCluster (journal|ledgers)\.size": r"does not allow expansion; set spec\.\w+\.size back to \d+Gi",
    r"HerdDBCluster tls\.plaintext": "the Secret other lacks tls.crt and tls.key and ca.crt: add it",
    "BookKeeperCluster bookies": "raise spec.bookies until 4 stay",
}
"""What a condition says of a value that can't be in force."""


def of(table: dict[str, str], leaf: Leaf) -> str | None:
    """What a table has for a field."""
    return next((text for pattern, text in table.items() if re.fullmatch(pattern, str(leaf))), None)


CHANGED = [leaf for leaf in ALL if of(EXCLUDED, leaf) is None]
BY_TURN = CHANGED if EVERY_FIELD else CHANGED[TURN % SHARE :: SHARE]


class Fields:
    """A settled stack, and how it looks. It is made anew when a test has left it otherwise."""

    def __init__(self, dynamic: DynamicClient) -> None:
        self.dynamic = dynamic
        self._stack: PlayedStack | None = None
        self.at_first: Json = {}

    def stack(self) -> PlayedStack:
        """As settled as at first."""
        if self._stack is None or steady(self._stack) != self.at_first:
            self._stack = PlayedStack(self.dynamic)
            self.at_first = steady(self._stack)
        return self._stack


@pytest.fixture(scope="module")
def fields(dynamic: DynamicClient) -> Fields:
    return Fields(dynamic)


def steady(stack: PlayedStack) -> Json:
    """All that is there, without numbers that count changes."""
    text = re.sub(r'"observedGeneration": \d+', '"observedGeneration": 0', json.dumps(picture(stack.stage)))
    return dict(json.loads(re.sub(r"(version=|zoo\.cfg\.dynamic\.)[0-9a-f]+", r"\1", text)))


def differences(before: Any, after: Any, path: str = "") -> dict[str, str]:
    """What differs, by path."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = sorted(before.keys() | after.keys())
        return {at: text for name in names for at, text in differences(before.get(name), after.get(name), f"{path}/{name}").items()}
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = zip(before, after, strict=True)
        return {at: text for number, pair in enumerate(pairs) for at, text in differences(*pair, f"{path}/{number}").items()}
    return {} if before == after else {path: f"{json.dumps(before)[:200]} -> {json.dumps(after)[:200]}"}


def declare(stack: PlayedStack, kind: str, name: str, spec: Json) -> list[str]:
    """The user's `kubectl replace`, and what comes of it: the pods that were restarted."""
    stage, before = stack.stage, templates(stack)
    body = [{"op": "replace", "path": "/spec", "value": spec}]
    stage.of(kind).patch(body=body, name=name, namespace=stage.namespace, content_type="application/json-patch+json")
    stack.disrupted.clear()
    stack.settle()
    same = [name for name, template in templates(stack).items() if template == before.get(name)]
    needless = [pod for pod in stack.disrupted if pod.rpartition("-")[0] in same]
    assert needless == [], f"{needless} were restarted, and their templates are as before"
    return list(stack.disrupted)


def templates(stack: PlayedStack) -> dict[str, Json]:
    """The pod template of each StatefulSet."""
    return {item["metadata"]["name"]: item["spec"]["template"] for item in stack.stage.listed("StatefulSet")}


def assert_names_field_and_fix(leaf: Leaf, message: str) -> None:
    """A refusal names the field, or what it is part of, and what to do instead."""
    parts = leaf.path.replace("[]", "").split(".")
    assert "in body should" not in message, f"{leaf} was given a value that is none"
    paths = [f"spec.{'.'.join(parts[:length])}" for length in range(1, len(parts) + 1)]
    assert any(path in message for path in paths), message
    assert re.search(r"\b(set|create|remove|lower|raise|change|keep|take|write)\b", message), message


def is_settled(status: Json) -> bool:
    """Whether nothing is left to do."""
    told = {condition["type"]: condition["status"] for condition in status["conditions"]}
    return (told["Ready"], told["Progressing"]) == ("True", "False")


@pytest.mark.parametrize("leaf", BY_TURN, ids=str)
def test_a_changed_field_is_in_force_or_refused_by_name_and_put_back_it_leaves_nothing(fields: Fields, leaf: Leaf) -> None:
    stack = fields.stack()
    name = "from-files" if leaf.path.startswith("bootstrap.") else NAMES[leaf.kind]
    spec = stack.stage.found(leaf.kind, name)["spec"]
    changed = leaf.changed(spec)
    before, told_before = stack.stage.versions(), told(stack, leaf.kind, name)
    try:
        restarted = declare(stack, leaf.kind, name, changed)
    except DynamicApiError as refused:
        assert_names_field_and_fix(leaf, json.loads(refused.body)["message"])
        if leaf.kind in ONCE:
            assert_in_force_in_another_one(stack, leaf, changed)
    else:
        assert leaf.kind not in ONCE or re.match(r"deletionPolicy|window\.", leaf.path), "its job may have read it already"
        assert of(TOLD, leaf) is None or restarted == []
        changes = [differences(told_before, told(stack, leaf.kind, name)), elsewhere(leaf, differences(fields.at_first, steady(stack)))]
        assert_in_force(stack, leaf, name, [*written_to(stack, before), *changes[0], *changes[1]])
        declare(stack, leaf.kind, name, spec)
    assert differences(fields.at_first, steady(stack)) == {}


def written_to(stack: PlayedStack, before: dict[tuple[str, str], str]) -> list[tuple[str, str]]:
    """The objects that are not as they were, but for pods."""
    after = stack.stage.versions()
    return [key for key in before.keys() | after.keys() if before.get(key) != after.get(key) and key[0] != "Pod"]


def told(stack: PlayedStack, kind: str, name: str) -> Json:
    """What the operator says of a resource, with the times that it names."""
    found = stack.stage.found(kind, name)
    conditions = [{**entry, "observedGeneration": 0, "lastTransitionTime": ""} for entry in found["status"]["conditions"]]
    status = {**found["status"], "observedGeneration": 0, "conditions": conditions}
    return {"finalizers": found["metadata"].get("finalizers"), "annotations": found["metadata"].get("annotations"), "status": status}


def elsewhere(leaf: Leaf, differing: dict[str, str]) -> list[str]:
    """What differs beside the spec that was changed."""
    return [path for path in differing if not re.match(rf"/resources/{leaf.kind}/\d+/spec", path)]


def assert_in_force(stack: PlayedStack, leaf: Leaf, name: str, traces: list[Any]) -> None:
    """The resource is settled with the value, or says why not."""
    status = stack.stage.found(leaf.kind, name)["status"]
    said = " | ".join(f"{condition['reason']}: {condition['message']}" for condition in status["conditions"])
    if (reason := of(TOLD, leaf)) is not None:
        assert re.search(reason, said), said
    else:
        assert is_settled(status) or leaf.kind in ONCE, said
    assert bool(traces) == (of(NO_TRACE, leaf) is None), f"{traces}; {said}"


def assert_in_force_in_another_one(stack: PlayedStack, leaf: Leaf, spec: Json) -> None:
    """What the refusal says: a new resource has that value."""
    stage = stack.stage
    stage.declare(leaf.kind, "other", spec)
    stack.resources.append((leaf.kind, "other"))
    stack.settle()
    jobs = [json.dumps(job(stack, name)).replace("other-", f"{NAMES[leaf.kind]}-") for name in (NAMES[leaf.kind], "other")]
    said = stage.found(leaf.kind, "other")["status"]["message"]
    if (reason := of(TOLD, leaf)) is not None:
        assert re.search(reason, said), said
    else:
        assert (jobs[0] != jobs[1]) == (of(NO_TRACE, leaf) is None), said
    stack.remove(leaf.kind, "other")


def job(stack: PlayedStack, name: str) -> Any:
    """The Job of a Checkpoint or an audit, with what belongs to it, None when there is none."""
    found = {key: item for key, item in stack.stage.made().items() if key[1].startswith(f"{name}-") and key[0] in ("Job", "ConfigMap")}
    return [[key[0], item.get("spec"), item.get("data")] for key, item in sorted(found.items())]


CRASHES = {
    "name": "server",
    "image": "other",
    "imageID": "",
    "ready": False,
    "restartCount": 9,
    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
}
NOT_READY = [{"type": "Ready", "status": "False"}]
WRONG: dict[str, tuple[str, Json]] = {
    "image": ("example.com/other:9", {"phase": "Running", "conditions": NOT_READY, "containerStatuses": [CRASHES]}),
    "pods.nodeSelector": ("example.com/other", {"phase": "Pending", "conditions": NOT_READY}),
    "pods.priorityClassName": ("priorityClassName", {}),
}
"""By path of a field: what of its other value is in pods that never serve, and their status; empty where they are not even made."""


CLUSTERS = ("ZooKeeperCluster", "BookKeeperCluster", "HerdDBCluster")


@pytest.mark.parametrize("kind", CLUSTERS)
@pytest.mark.parametrize("path", WRONG)
def test_where_the_first_pod_never_serves_no_second_one_is_restarted_and_put_back_it_heals(fields: Fields, kind: str, path: str) -> None:
    stack, name, (mark, status) = fields.stack(), NAMES[kind], WRONG[path]
    spec = stack.stage.found(kind, name)["spec"]
    stack.stuck = lambda pod: status if mark in json.dumps(pod) else None
    (first,) = declare(stack, kind, name, Leaf(kind, path).changed(spec))
    said = told(stack, kind, name)["status"]
    assert not is_settled(said)
    assert first in json.dumps(said)
    assert declare(stack, kind, name, spec) == ([first] if status else [])
    assert differences(fields.at_first, steady(stack)) == {}


@pytest.mark.parametrize("kind", CLUSTERS)
def test_what_only_kubernetes_refuses_is_told_in_its_words_and_put_back_it_heals(fields: Fields, kind: str) -> None:
    stack, name = fields.stack(), NAMES[kind]
    spec = stack.stage.found(kind, name)["spec"]
    stack.stage.patch(kind, name, {"spec": {"pods": {"nodeSelector": {f"{'a' * 254}/disk": "ssd"}}}})
    stack.stage.cache = stack.stage.watched()
    assert stack.stage.reconcile(kind, name).outcome is Outcome.FAILED
    status, reason = stack.stage.condition(kind, name, "Progressing")
    assert (status, reason) == ("True", "ActionFailed")
    shown = json.dumps(told(stack, kind, name), ensure_ascii=False).replace('\\"', '"')
    assert 'spec.template.spec.nodeSelector: Invalid value: "aaa' in shown
    assert declare(stack, kind, name, spec) == []
    assert differences(fields.at_first, steady(stack)) == {}


@pytest.mark.parametrize("size", ["1024Ti", "99999999999999Ti"])
def test_a_size_that_the_api_server_writes_otherwise_is_settled_and_put_back_it_leaves_nothing(fields: Fields, size: str) -> None:
    stack = fields.stack()
    spec = stack.stage.found("ZooKeeperCluster", "zk")["spec"]
    declare(stack, "ZooKeeperCluster", "zk", {**spec, "resources": {**spec["resources"], "memory": size}})
    declare(stack, "ZooKeeperCluster", "zk", spec)
    assert differences(fields.at_first, steady(stack)) == {}


def test_each_exception_is_about_fields_that_there_are() -> None:
    known = [str(leaf) for leaf in ALL]
    stale = [pattern for table in (EXCLUDED, NO_TRACE, TOLD) for pattern in table if not any(re.fullmatch(pattern, leaf) for leaf in known)]
    assert stale == []
    assert len(known) == len(set(known))
