"""Moves of leaderships are each another tablespace's: one that fails stops no other, and only what says that it was done. Of other
actions, a failure stops what may depend on it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest
from kubernetes.client import ApiException
from test_plan_herddb import CLUSTER, LOG, PODS
from test_plan_leaders import RECORD

from herdkeeper.bookkeeper.execute import BookieAdmin
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.kubernetes_writer import ChangedAtOnceError, RefusedError
from herdkeeper.clients.look import look
from herdkeeper.clients.zookeeper import ChangedMeanwhileError
from herdkeeper.codecs.herddb.tablespace import encode_tablespace
from herdkeeper.engine.execute import Clients, execute
from herdkeeper.engine.key import Key
from herdkeeper.engine.kinds import Steps
from herdkeeper.engine.leadership import execute_leadership
from herdkeeper.engine.reconcile import reconcile
from herdkeeper.engine.result import Outcome, Result
from herdkeeper.herddb.execute.node_orders import SqlNodes
from herdkeeper.herddb.leadership.plan import LeadershipPlan
from herdkeeper.planning.actions import (
    Apply,
    BarPromotion,
    ChangeTablespaceRecord,
    CheckpointFollower,
    CloseLedger,
    Create,
    Delete,
    EnsureZnode,
    Plan,
    Resize,
    SetBookieMode,
    WakeNodes,
)
from herdkeeper.planning.summary import Health, Summary
from herdkeeper.shared import names
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown


@dataclass
class Znodes:
    """Compare-and-set fails at these paths. `done` is what did not. Records are those of the tablespace with this uuid, None: of none."""

    lost: frozenset[str]
    done: list[str] = field(default_factory=list)
    uuid: str | None = RECORD.uuid

    def at(self, _address: str, _identity: object = None) -> Znodes:
        return self

    def read(self, _path: str) -> tuple[bytes, int] | None:
        return None if self.uuid is None else (encode_tablespace(replace(RECORD, uuid=self.uuid)), 4)

    def compare_and_set(self, path: str, _data: bytes, _version: int) -> None:
        if path in self.lost:
            raise ChangedMeanwhileError(f"{path} changed since it was read")
        self.done.append(path)

    def ensure(self, path: str) -> None:
        self.done.append(path)


@dataclass
class Writer:
    """What is applied, deleted and told. A new policy of the name `refused` is refused."""

    applied: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)

    def apply(self, action: Apply) -> None:
        if action.manifest["metadata"]["name"] == "refused":
            raise RefusedError("refused: exceeded quota")
        if action.manifest["metadata"]["name"] == "changed":
            raise ChangedAtOnceError("spec.replicas of StatefulSet changed is not as it was just applied")
        self.applied.append(action.manifest["kind"])

    def delete(self, _namespace: str, action: Delete) -> None:
        self.applied.append(f"no {action.name}")

    def resize(self, _namespace: str, action: Resize) -> None:
        raise RefusedError(f"{action.name}: exceeded quota")

    def create(self, action: Create) -> None:
        raise RefusedError(f"{action.manifest['metadata']['name']}: exceeded quota")

    def write_status(self, _resource: object, _status: object) -> None:
        """What is told of it is another test's."""

    def event(self, _resource: object, reason: str, message: str, _kind: str) -> None:
        self.events.append(f"{reason}: {message}")


def move(name: str, reason: Reason = Reason.LEADER_MOVED) -> ChangeTablespaceRecord:
    record = replace(RECORD, name=name, leader=PODS[1])
    return ChangeTablespaceRecord(LOG.zookeeper_address, f"/{name}", record, 4, "led by another one", reason)


RESIZE = Resize("bk-bookie-0-ledgers", "its-uid", "40Gi")
SERVICE = Apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "flights-leader"}}, False, Reason.LEADER_MOVED)


def kind(name: str) -> Apply:
    return replace(SERVICE, manifest={**SERVICE.manifest, "kind": name})


def done_of(*actions, lost=("/b",)):
    """What of the actions was done, where others have changed these records before: in ZooKeeper, in Kubernetes, and what failed."""
    znodes, writer = Znodes(frozenset(lost)), Writer()
    failed = execute(CLUSTER, Plan(actions), Clients(writer, ClusterReader(None, znodes, None), BookieAdmin(), lambda: True, None))
    return znodes.done, writer.applied, failed


def led_of(*moves, after=(), uuid=RECORD.uuid, due=()):
    """The same of a plan for leaders. `after` says that the last of them was done. `due` is what a later look finds."""
    znodes, writer = Znodes(frozenset({"/b"}), uuid=uuid), Writer()
    clients = Clients(writer, ClusterReader(None, znodes, None), None, lambda: True, None)
    plan = LeadershipPlan(moves, ((moves[-1].record.name, after),) if after else ())
    failed = execute_leadership(CLUSTER, plan, clients, lambda: LeadershipPlan(due))
    return znodes.done, writer.applied, failed


@pytest.mark.parametrize(
    ("situation", "due", "expected"),
    [
        ("nothing has changed", ("b", "c"), (["/a", "/c"], ["Service"])),
        ("another wish came first", ("b",), (["/a"], [])),
        ("it was found to differ meanwhile", (), (["/a"], [])),
    ],
)
def test_a_follower_whose_rows_are_found_wrong_while_it_writes_its_checkpoint_is_not_made_the_leader(situation, due, expected, monkeypatch):
    monkeypatch.setattr(SqlNodes, "order", lambda *_, **__: {})
    checkpoint = CheckpointFollower("db", PODS[1], "c")
    done, applied, failed = led_of(move("a"), checkpoint, move("c"), after=(SERVICE,), due=tuple(map(move, due)))
    assert (done, applied, failed) == (*expected, None), situation


def test_a_move_that_somebody_else_was_quicker_with_stops_no_other_one():
    done, _, failed = led_of(move("a"), move("b"), move("c"))
    assert done == ["/a", "/c"]
    assert failed is not None
    assert "/b changed since it was read" in failed.message


@pytest.mark.parametrize("uuid", ["a-later-uuid", None], ids=["made again", "dropped"])
def test_a_move_does_not_reach_a_tablespace_that_was_made_again_under_the_name_though_its_record_has_that_version(uuid):
    """A follower's checkpoint before the move takes seconds, and versions of a new record begin at 0."""
    done, _, failed = led_of(move("a"), uuid=uuid)
    assert done == []
    assert failed is not None
    assert "/a is of another tablespace than the one that was read, or gone" in failed.message


def test_what_says_that_a_move_was_done_is_left_out_when_it_was_not():
    assert led_of(move("a"), move("b"), after=(SERVICE,))[1] == []
    assert led_of(move("a"), move("c"), after=(SERVICE,))[1] == ["Service"]


def test_a_service_follows_the_move_of_its_tablespace_though_that_of_another_one_fails():
    assert led_of(move("b"), move("a"), after=(SERVICE,))[1] == ["Service"]


@pytest.mark.parametrize(
    ("situation", "refused_order", "looks", "moved"),
    [
        ("the order for a follower's checkpoint", "/tablespaces/c/checkpoint", ["c d", "c d"], ["a", "c", "d"]),
        ("the look after it, so that nobody knows whether the rows of c are right", None, ["error", "c d"], ["a", "d"]),
        ("each look", None, ["error", "error"], ["a"]),
        ("the order that wakes a node", "/activator/wake", ["c d", "c d"], ["a", "c", "d"]),
    ],
)
def test_an_error_that_nobody_expects_holds_up_no_other_tablespace(situation, refused_order, looks, moved, monkeypatch):
    def order(_, herddb, node, path, *, seconds):
        if path == refused_order:
            raise ApiException(500, "the Secret with the token can't be read")
        return {}

    def look_again() -> LeadershipPlan:
        found = answers.pop(0)
        if found == "error":
            raise ApiException(500, "a Service can't be read")
        return LeadershipPlan(tuple(map(move, found.split())))

    monkeypatch.setattr(SqlNodes, "order", order)
    answers, znodes, writer = list(looks), Znodes(frozenset()), Writer()
    clients = Clients(writer, ClusterReader(None, znodes, None), None, lambda: True, None)
    wake = WakeNodes("db", (PODS[1],))
    moves = [action for name in "cd" for action in (CheckpointFollower("db", PODS[1], name), move(name), wake)]
    plan = LeadershipPlan((move("a"), wake, *moves), tuple((name, (kind(f"Service of {name}"),)) for name in "acd"), beside=((SERVICE,),))
    with pytest.raises(ApiException, match="can't be read"):
        execute_leadership(CLUSTER, plan, clients, look_again)
    assert znodes.done == [f"/{name}" for name in moved], situation
    assert writer.applied == [*(f"Service of {name}" for name in moved), "Service"], situation
    assert len([each for each in writer.events if "led by another one" in each]) == len(moved), situation


def test_all_leaders_are_moved_and_services_follow_before_an_event_is_sent(monkeypatch):
    """The API server may answer each event late, or be on the machine that was lost."""
    znodes, writer, found = Znodes(frozenset({"/b"})), Writer(), []
    monkeypatch.setattr(writer, "event", lambda *event: found.append((event[1], list(znodes.done), list(writer.applied))))
    clients = Clients(writer, ClusterReader(None, znodes, None), None, lambda: True, None)
    plan = LeadershipPlan((move("a"), move("b"), move("c")), beside=((SERVICE,),))
    execute_leadership(CLUSTER, plan, clients, lambda: plan)
    assert found == [(reason, ["/a", "/c"], ["Service"]) for reason in ("LeaderMoved", "ActionFailed", "LeaderMoved", "LeaderMoved")]


def test_a_move_that_fails_holds_up_no_other_tablespace_s_service_and_no_mark_of_a_node():
    mark = Apply({"apiVersion": "v1", "kind": "Mark", "metadata": {"name": "marked"}}, False, Reason.DID_NOT_LEAD)
    after = replace(SERVICE, manifest={**SERVICE.manifest, "kind": "ServiceOfMoved"})
    writer = Writer()
    clients = Clients(writer, ClusterReader(None, Znodes(frozenset({"/b"})), None), None, lambda: True, None)
    beside = ((refused("Service"), replace(mark, manifest={**mark.manifest, "kind": "Answer"})), (SERVICE,), (mark,))
    plan = LeadershipPlan((move("b"),), (("b", (after,)),), beside=beside)
    failed = execute_leadership(CLUSTER, plan, clients, lambda: plan)
    assert writer.applied == ["Service", "Mark"], "the answer comes after the Service that it is about"
    assert failed is not None
    assert "/b changed since it was read" in failed.message


def test_any_other_action_that_fails_stops_all_that_follow():
    assert done_of(move("b", Reason.REPLICAS_CHANGED), move("a"))[0] == []
    assert done_of(EnsureZnode("zk:2181", "/root"), move("b", Reason.REPLICAS_CHANGED), move("a"))[0] == ["/root"]


def test_nodes_are_woken_at_the_same_time_so_that_a_silent_one_keeps_none_asleep(monkeypatch):
    both = threading.Barrier(2, timeout=120)

    def order(*_, **__):
        both.wait()
        return Unknown("silence")

    monkeypatch.setattr(SqlNodes, "order", order)
    SqlNodes("demo", None, None).wake(WakeNodes("db", tuple(PODS)))
    assert not both.broken


def test_an_order_is_about_the_tablespace_of_its_name_whatever_a_sql_user_called_it(monkeypatch):
    asked = []
    monkeypatch.setattr(SqlNodes, "order", lambda _, herddb, node, path, *, seconds: asked.append(path) or {})
    SqlNodes("demo", None, None).close_ledger(CloseLedger("db", PODS[0], "my log?ledger=1#%2f", 4))
    assert asked == ["/tablespaces/my%20log%3Fledger%3D1%23%252f/close-ledger?ledger=4"]


def test_a_node_that_refuses_to_be_barred_keeps_nothing_else_from_being_done(monkeypatch):
    monkeypatch.setattr(SqlNodes, "order", lambda *_, **__: Unknown("it answered 503"))
    bar = BarPromotion("db", PODS[1], "flights", "a-uuid", True, (4, 9), "it had other rows")
    done, applied, failed = done_of(bar, move("a", Reason.REPLICA_DIFFERS), SERVICE)
    assert (done, applied) == (["/a"], ["Service"])
    assert failed is not None
    assert failed.message.endswith("it answered 503")
    assert done_of(bar, move("b", Reason.REPLICA_DIFFERS), move("a"))[0] == []


def test_a_volume_claim_that_kubernetes_refuses_to_resize_keeps_nothing_else_from_being_done():
    """A quota may refuse it for ever, and before Kubernetes 1.32 each request that is taken back is refused."""
    done, applied, failed = done_of(RESIZE, replace(RESIZE, name="bk-bookie-1-ledgers"), EnsureZnode("zk:2181", "/root"), SERVICE)
    assert (done, applied) == (["/root"], ["Service"])
    assert failed is not None
    assert failed.message.endswith("bk-bookie-0-ledgers: exceeded quota")


def created(kind: str) -> Create:
    return Create({"apiVersion": "v1", "kind": kind, "metadata": {"name": "bk-bookie-1-drain-1"}})


@pytest.mark.parametrize(
    ("action", "applied"),
    [
        (created("Job"), ["Service"]),
        (created("ConfigMap"), ["Service"]),
        (SetBookieMode("bk-1", "127.0.0.1:not-a-port", True, "a token", Reason.DRAINING), ["Service"]),
        (created("PersistentVolumeClaim"), []),
    ],
)
def test_a_step_of_a_drain_that_is_refused_holds_up_no_new_bookie(action, applied):
    """A quota may refuse its Job for ever, and a bookie the order to be read-only. Without its claims a bookie gets no StatefulSet."""
    _, found, failed = done_of(action, SERVICE)
    assert found == applied
    assert failed is not None
    assert failed.backs_off


def refused(kind: str, *, new: bool = False, **labels: str) -> Apply:
    metadata = {"name": "refused", "labels": labels}
    return Apply({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata}, new, Reason.UPDATING)


A_BOOKIES, SQL_NODES, MEMBERS, AUTORECOVERY = (
    {names.COMPONENT_LABEL: component} for component in ("bookie", "herddb", "zookeeper", "autorecovery")
)


@pytest.mark.parametrize(
    ("situation", "action", "applied"),
    [
        ("a bookie's template", refused("StatefulSet", **A_BOOKIES), ["Service"]),
        ("autorecovery's template", refused("Deployment", **AUTORECOVERY), ["Service"]),
        ("that of SQL nodes", refused("StatefulSet", **SQL_NODES), ["Service"]),
        ("that of a new bookie, which others may follow", refused("StatefulSet", new=True, **A_BOOKIES), []),
        ("that of members", refused("StatefulSet", **MEMBERS), []),
        ("what pods read when they start", refused("ConfigMap", **A_BOOKIES), []),
    ],
)
def test_a_pod_template_that_is_refused_holds_up_no_drain_and_no_lost_bookie(situation, action, applied):
    """A webhook may not admit an image, or Kubernetes a label in `spec.pods.nodeSelector`, until a person puts it right."""
    _, found, failed = done_of(action, SERVICE)
    assert found == applied, situation
    assert failed is not None
    assert failed.backs_off


def test_an_object_that_a_webhook_changes_at_each_apply_is_told_and_holds_up_nothing():
    changed = Apply({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "changed"}}, False, Reason.UPDATING)
    _, applied, failed = done_of(changed, SERVICE)
    assert applied == ["Service"]
    assert failed is not None
    assert "spec.replicas of StatefulSet changed is not as it was just applied" in failed.message
    assert failed.backs_off


def test_silent_bookies_that_are_to_be_read_only_do_not_take_all_of_a_workers_time():
    with look(-1.0):
        failed = done_of(SetBookieMode("bk-1", "127.0.0.1:not-a-port", True, "a token", Reason.DRAINING))[2]
    assert failed is not None
    assert "took too long" in failed.message


def test_whatever_is_refused_network_policies_are_written():
    """A quota may refuse a bookie for ever, and nobody may reach its neighbours meanwhile who is not to."""
    policy = Apply({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "bk"}}, True, Reason.CREATING)
    _, applied, failed = done_of(created("PersistentVolumeClaim"), SERVICE, policy)
    assert applied == ["NetworkPolicy"]
    assert failed is not None
    assert failed.message.endswith("exceeded quota")


def test_while_a_network_policy_is_refused_no_other_one_is_removed_and_all_others_are_written():
    """The one that is to go may be all that keeps others away from a server: a policy that is gone admits everybody."""

    def policy(name: str) -> Apply:
        metadata = {"name": name}
        return Apply({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata}, True, Reason.CREATING)

    earlier = Delete("networking.k8s.io/v1", "NetworkPolicy", "earlier", "its-uid", Reason.REMOVED)
    for before in ((), (created("PersistentVolumeClaim"),)):
        assert done_of(*before, policy("refused"), policy("other"), earlier)[1] == ["NetworkPolicy"]
        assert done_of(*before, policy("new"), earlier)[1] == ["NetworkPolicy", "no earlier"]


def test_an_open_ledger_whose_writer_is_away_keeps_no_other_one_open(monkeypatch):
    """A SQL node may be lost with the machine of a bookie."""

    def order(_, herddb, node, path, *, seconds):
        return Unknown("silence") if node == PODS[0] else asked.append(path) or {}

    asked = []
    monkeypatch.setattr(SqlNodes, "order", order)
    orders = (CloseLedger("db", PODS[0], "flights", 4), CloseLedger("db", PODS[1], "airports", 5))
    done, _, failed = done_of(*orders, EnsureZnode("zk:2181", "/root"))
    assert (asked, done) == (["/tablespaces/airports/close-ledger?ledger=5"], ["/root"])
    assert failed is not None
    assert failed.message.endswith("silence")


def test_silent_writers_of_many_ledgers_do_not_take_all_of_a_workers_time(monkeypatch):
    monkeypatch.setattr(SqlNodes, "order", lambda *_, **__: {})
    with look(-1.0):
        failed = done_of(CloseLedger("db", PODS[0], "flights", 4))[2]
    assert failed is not None
    assert "took too long" in failed.message


@pytest.mark.parametrize(
    ("situation", "actions", "again", "applied"),
    [
        ("the rest was done", (RESIZE, SERVICE), 5.0, ["Service"]),
        ("a SQL node is silent, too", (CloseLedger("db", PODS[0], "flights", 4), RESIZE, SERVICE), None, ["Service"]),
        ("something else failed, too", (RESIZE, move("b", Reason.REPLICAS_CHANGED), SERVICE), None, []),
    ],
)
def test_a_refused_resize_slows_the_rest_down_no_more(situation, actions, again, applied, monkeypatch):
    monkeypatch.setattr(SqlNodes, "order", lambda *_, **__: Unknown("silence"))
    writer, kubernetes = Writer(), SimpleNamespace(resource=lambda *_: CLUSTER)
    clients = Clients(writer, ClusterReader(kubernetes, Znodes(frozenset({"/b"})), None), None, lambda: True, None)
    summary = Summary(Health("True", Reason.READY, "it serves"), {})
    steps = Steps(lambda *_: None, lambda *_: (), lambda *_: Plan(actions, requeue_after_seconds=5.0), lambda *_: summary)
    assert reconcile(Key.of(CLUSTER), steps, clients) == Result(Outcome.FAILED, again), situation
    assert writer.applied == applied, situation
