"""Leaders are moved on the real API server: when their pod goes, when somebody asks, and before their node is restarted."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping

import pytest
from sql_database import HERDDB, NODES, RECORD, TABLESPACE, named, record_path, serving_database
from stage import MERGE_PATCH, ZOOKEEPER_ADDRESS, Stage, nothing_written

from herdkeeper.clients.liveness import NodeLiveness
from herdkeeper.clients.zookeeper import ANY_VERSION, EnsembleError, Znode
from herdkeeper.clients.zookeeper_member import Wake
from herdkeeper.codecs.herddb.node import node_path
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord, decode_tablespace, encode_tablespace, heartbeat_path, tablespace_path
from herdkeeper.codecs.herddb.users import decode_users
from herdkeeper.engine.execute_metadata import forget_node
from herdkeeper.engine.result import Outcome, Result
from herdkeeper.planning.actions import ForgetNode
from herdkeeper.protocol.log_pin import ARCHIVE, CHECKPOINT, SECOND_DISK, decode_log_pin, encode_log_pin, log_pin_path
from herdkeeper.protocol.self_report import SelfReport
from herdkeeper.shared import names
from herdkeeper.shared.objects import stopping


def followed(stage: Stage) -> str:
    """The pod that the leader's Service selects."""
    return str(stage.found("Service", "flights-leader")["spec"]["selector"][names.POD_NAME_LABEL])


class OperatorKilledError(Exception):
    """The process ends here."""


@pytest.fixture
def stage(stage: Stage) -> Stage:
    return serving_database(stage)


def leader(stage: Stage) -> str:
    found = stage.ensemble.read(record_path(stage))
    assert found is not None
    return decode_tablespace(found[0]).leader


def ask(stage: Stage, node: str) -> None:
    stage.patch(TABLESPACE, "flights", {"metadata": {"annotations": {names.SWITCHOVER_ANNOTATION: node}}})


def woken(stage: Stage) -> list[str]:
    return [url.removeprefix("http://").partition(".")[0] for url in stage.nodes.orders if url.endswith("/activator/wake")]


def test_a_settled_database_gets_no_write(stage: Stage) -> None:
    with nothing_written(stage):
        stage.reconcile(HERDDB, "db")
    assert leader(stage) == NODES[0]


def test_a_leader_of_which_neither_the_operator_nor_zookeeper_hears_is_replaced_and_one_that_sends_heartbeats_is_not(stage: Stage) -> None:
    clock = [100.0]
    stage.liveness = NodeLiveness(now=lambda: clock[0])
    for node in NODES:
        stage.liveness.heard(stage.found("Pod", node)["metadata"]["uid"])
    clock[0] += 6.0
    stage.liveness.heard(stage.found("Pod", NODES[1])["metadata"]["uid"])
    for node in NODES:
        path = heartbeat_path(named(stage).herd_root, "a-uuid", node)
        stage.ensemble.put(path, b"")
        stage.ensemble.changed_by_path[path] = 2000.0
    stage.reconcile(HERDDB, "db")
    assert leader(stage) == NODES[0]

    stage.ensemble.changed_by_path[heartbeat_path(named(stage).herd_root, "a-uuid", NODES[1])] = 2006.0
    stage.reconcile(HERDDB, "db")
    assert leader(stage) == NODES[1]
    assert woken(stage) == [NODES[1]]


def test_a_leader_that_tells_that_its_bookies_or_zookeeper_do_not_answer_it_is_replaced(stage: Stage) -> None:
    first, second = (stage.found("Pod", node)["metadata"]["uid"] for node in NODES)
    stage.liveness.heard(first, SelfReport(zookeeper_steady=60.0, unacknowledged={"flights": 7.5}))
    stage.liveness.heard(second, SelfReport(zookeeper_steady=60.0))
    stage.reconcile(HERDDB, "db")
    assert (leader(stage), woken(stage)) == (NODES[1], [NODES[1]])
    (told,) = [event["message"] for event in stage.events("db") if event["reason"] == "LeaderMoved"]
    assert "its bookies no longer acknowledge" in told

    stage.nodes.herddb_holds(named(stage), "flights", "a-uuid", ("follower", "leader"))
    stage.liveness.heard(first, SelfReport(zookeeper_steady=60.0))
    stage.liveness.heard(second, SelfReport(zookeeper_silent=7.5))
    for node, beat in zip(NODES, (2006.0, 2000.0), strict=True):
        path = heartbeat_path(named(stage).herd_root, "a-uuid", node)
        stage.ensemble.put(path, b"")
        stage.ensemble.changed_by_path[path] = beat
    stage.reconcile(HERDDB, "db")
    assert leader(stage) == NODES[0]


@pytest.mark.parametrize("skew", [-3600.0, 3600.0])
def test_a_leader_is_not_replaced_twice_within_seconds_by_zookeeper_s_clock_whatever_the_operator_s_says(stage: Stage, skew: float) -> None:
    changed_at = time.time() + skew
    stage.ensemble.changed_at = changed_at
    beats = [heartbeat_path(named(stage).herd_root, "a-uuid", node) for node in NODES]
    for path in beats:
        stage.ensemble.put(path, b"")
    stage.delete("Pod", NODES[0])
    stage.ensemble.changed_by_path[beats[1]] = changed_at + 4.0
    stage.reconcile(HERDDB, "db")
    assert leader(stage) == NODES[0]
    stage.ensemble.changed_by_path[beats[1]] = changed_at + 5.0
    stage.reconcile(HERDDB, "db")
    assert leader(stage) == NODES[1]


def test_a_leader_whose_process_registered_after_it_got_the_leadership_is_replaced_while_it_boots(stage: Stage) -> None:
    stage.nodes.herddb_holds(named(stage), "flights", "a-uuid", ("booting", "follower"))
    registration = node_path(named(stage).herd_root, NODES[0])
    stage.ensemble.put(registration, b"")
    stage.ensemble.changed_by_path = {record_path(stage): 1000.0, registration: 999.0}
    stage.reconcile(HERDDB, "db")
    assert leader(stage) == NODES[0]
    stage.ensemble.changed_by_path[registration] = 1001.0
    stage.reconcile(HERDDB, "db")
    assert leader(stage) == NODES[1]


def test_a_preferred_node_that_does_not_take_over_loses_the_leadership_and_is_not_tried_again_at_once(stage: Stage) -> None:
    def look(since_the_last_change: float) -> None:
        stage.ensemble.changed_by_path[record_path(stage)] = 1000.0
        stage.ensemble.changed_by_path[beat] = 1000.0 + since_the_last_change
        stage.reconcile(HERDDB, "db")

    beat = heartbeat_path(named(stage).herd_root, "a-uuid", NODES[0])
    stage.ensemble.put(beat, b"")
    stage.patch(TABLESPACE, "flights", {"spec": {"preferredLeader": NODES[1], "failback": "WhenHealthy"}})
    look(60.0)
    assert leader(stage) == NODES[1]
    stage.nodes.herddb_holds(named(stage), "flights", "a-uuid", ("follower", "failed"))
    look(12.0)
    mark = names.DID_NOT_LEAD_PREFIX + NODES[1]
    assert stage.found(HERDDB, "db")["metadata"]["annotations"][mark] == "1 in a row, last flights at 1000"
    assert "DidNotLead" in [event["reason"] for event in stage.events("db")]
    look(30.0)
    assert leader(stage) == NODES[0]

    stage.nodes.herddb_holds(named(stage), "flights", "a-uuid", ("leader", "follower"))
    look(119.0)
    assert leader(stage) == NODES[0]
    stage.settle(HERDDB, "db")
    look(120.0)
    assert leader(stage) == NODES[1]
    stage.nodes.herddb_holds(named(stage), "flights", "a-uuid", ("follower", "leader"))
    look(1.0)
    assert mark not in stage.found(HERDDB, "db")["metadata"].get("annotations", {})


def test_the_leadership_of_a_deleted_pod_is_moved_by_one_reconcile(stage: Stage) -> None:
    stage.delete("Pod", NODES[0])
    stage.reconcile(HERDDB, "db")
    assert leader(stage) == NODES[1]
    assert woken(stage) == [NODES[1]]
    assert followed(stage) == NODES[1]
    (told,) = [event["message"] for event in stage.events("db") if event["reason"] == "LeaderMoved"]
    assert f"led by {NODES[1]}, since {NODES[0]} can't lead any more (its pod is gone)" in told


def test_a_leader_is_replaced_though_its_database_is_refused_unless_somebody_wants_it_left_alone(stage: Stage) -> None:
    stage.patch("BookKeeperCluster", "bk", {"spec": {"bookies": 2}})
    stage.patch(HERDDB, "db", {"spec": {"replicas": 3}, "metadata": {"annotations": {names.PAUSED_ANNOTATION: "true"}}})
    ask(stage, NODES[1])
    assert stage.reconcile(HERDDB, "db").outcome is Outcome.REFUSED
    stage.delete("Pod", NODES[0])
    stage.reconcile(HERDDB, "db")
    assert leader(stage) == NODES[0]

    stage.patch(HERDDB, "db", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}})
    assert stage.reconcile(HERDDB, "db").outcome is Outcome.REFUSED
    assert (leader(stage), followed(stage), woken(stage)) == (NODES[1], NODES[1], [NODES[1]])
    assert stage.found("StatefulSet", "db-herddb")["spec"]["replicas"] == 2
    assert names.SWITCHOVER_ANNOTATION in stage.found(TABLESPACE, "flights")["metadata"]["annotations"]
    assert stage.condition(HERDDB, "db") == ("False", "InvalidSpec")


def test_lost_leaders_are_replaced_without_the_rest_of_their_database(stage: Stage) -> None:
    with nothing_written(stage):
        assert stage.lead("db") == Result(Outcome.OK)
    stage.delete("Service", "db-herddb")
    before = stage.found(HERDDB, "db")["status"]
    stage.nodes.herddb_is_gone(named(stage), 0)
    assert stage.lead("db") == Result(Outcome.OK, 1.0)
    assert (leader(stage), followed(stage), woken(stage)) == (NODES[1], NODES[1], [NODES[1]])
    assert (stage.live("Service", "db-herddb"), stage.found(HERDDB, "db")["status"]) == (None, before)


@pytest.mark.parametrize("mark", [names.PAUSED_ANNOTATION, names.PLAN_ANNOTATION])
def test_leaders_of_a_database_that_is_left_alone_stay_however_they_are_looked_at(stage: Stage, mark: str) -> None:
    stage.patch(HERDDB, "db", {"metadata": {"annotations": {mark: "true"}}})
    stage.nodes.herddb_is_gone(named(stage), 0)
    assert stage.lead("db") == Result(Outcome.OK)
    assert leader(stage) == NODES[0]


def test_a_lost_leader_is_replaced_while_the_deletion_of_its_database_waits_and_not_once_its_nodes_are_taken_down(stage: Stage) -> None:
    stage.patch(HERDDB, "db", {"metadata": {"finalizers": [names.FINALIZER]}, "spec": {"deletionPolicy": "Delete"}})
    stage.patch(TABLESPACE, "flights", {"metadata": {"finalizers": [names.FINALIZER]}, "spec": {"deletionPolicy": "Delete"}})
    for kind, name in ((TABLESPACE, "flights"), (HERDDB, "db")):
        stage.delete(kind, name)
    ask(stage, NODES[1])
    stage.reconcile(HERDDB, "db")
    assert stage.found("StatefulSet", "db-herddb"), "it waits for what drops its tablespace"
    assert leader(stage) == NODES[0], "no wish is followed any more"
    stage.nodes.herddb_is_gone(named(stage), 0)
    stage.lead("db")
    assert (leader(stage), woken(stage)) == (NODES[1], [NODES[1]])

    stage.ensemble.put(record_path(stage), encode_tablespace(RECORD))
    stage.delete("StatefulSet", "db-herddb")
    assert stage.lead("db") == Result(Outcome.OK)
    assert leader(stage) == NODES[0]


def test_a_pin_of_a_tablespace_that_is_declared_again_stays_if_that_has_moved_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database's key takes pins away that nobody would move: it found no Tablespace, and goes on once there is one."""
    stage.delete(TABLESPACE, "flights")
    pin = log_pin_path(named(stage).herd_root, "a-uuid", SECOND_DISK)
    stage.ensemble.put(pin, encode_log_pin((4, 0)))
    delete = stage.ensemble.delete

    def later(path: str, version: int = ANY_VERSION) -> None:
        if path == pin:
            stage.ensemble.compare_and_set(pin, encode_log_pin((5, 0)), stage.ensemble.znodes[pin][1])
        delete(path, version)

    monkeypatch.setattr(stage.ensemble, "delete", later)
    stage.reconcile_at(time.time() + 2 * 86_400, HERDDB, "db")
    assert decode_log_pin(stage.ensemble.znodes[pin][0]) == (5, 0)
    monkeypatch.setattr(stage.ensemble, "delete", delete)
    stage.reconcile_at(time.time() + 2 * 86_400, HERDDB, "db")
    assert pin not in stage.ensemble.znodes, "nobody declares it"


def test_no_pin_of_a_tablespace_that_nobody_declares_any_more_stays(stage: Stage) -> None:
    """Such as when pins were kept for a resource that was to take it over, and that was deleted before it did."""
    stage.delete(TABLESPACE, "flights")
    pins = [log_pin_path(named(stage).herd_root, "a-uuid", name) for name in (CHECKPOINT, ARCHIVE, SECOND_DISK)]
    for pin in pins:
        stage.ensemble.put(pin, encode_log_pin((4, 0)))
    stage.reconcile(HERDDB, "db")
    assert set(pins) <= set(stage.ensemble.znodes), "it may yet be declared"
    stage.reconcile_at(time.time() + 2 * 86_400, HERDDB, "db")
    assert not set(pins) & set(stage.ensemble.znodes)


def test_a_leader_is_left_while_its_pod_still_stops(stage: Stage) -> None:
    stage.patch("Pod", NODES[0], {"metadata": {"finalizers": ["herdkeeper.io/still-stopping"]}})
    stage.delete("Pod", NODES[0])
    assert stage.found("Pod", NODES[0])["metadata"]["deletionTimestamp"]
    stage.reconcile(HERDDB, "db")
    assert leader(stage) == NODES[1]


OTHERS = ("flights", "weather", "herd")


def lead(stage: Stage, roles: Mapping[str, tuple[str, str]]) -> None:
    """The two nodes say that they hold settled copies of these tablespaces, in these roles."""
    urls = [f"http://{named(stage).host(number)}:{names.HERDDB_HTTP_PORT}/tablespaces" for number in range(len(NODES))]
    copies: dict[str, list[object]] = {url: [] for url in urls}
    for tablespace, by_node in roles.items():
        stage.nodes.herddb_holds(named(stage), tablespace, f"uuid-of-{tablespace}", by_node)
        for url in urls:
            copies[url] += stage.nodes.documents[url]
    stage.nodes.documents.update(copies)


def leads(stage: Stage, node: str) -> list[str]:
    """The tablespaces that a node shall lead, by their records."""
    paths = {tablespace: tablespace_path(named(stage).herd_root, tablespace) for tablespace in OTHERS}
    return [tablespace for tablespace, path in paths.items() if decode_tablespace(stage.ensemble.znodes[path][0]).leader == node]


@pytest.fixture
def three_led(stage: Stage) -> Stage:
    """Three tablespaces, all led by the first node, whose pod is given its grace period when it is deleted: a machine has it."""
    for tablespace in OTHERS:
        record = TablespaceRecord(f"uuid-of-{tablespace}", tablespace, NODES[0], NODES, 1, 60_000)
        stage.ensemble.put(tablespace_path(named(stage).herd_root, tablespace), encode_tablespace(record))
    lead(stage, dict.fromkeys(OTHERS, ("leader", "follower")))
    stage.of("Pod").delete(name=NODES[0], namespace=stage.namespace, body={"gracePeriodSeconds": 0})
    stage.add_node(f"{stage.namespace}-a", {})
    stage.serve("db-herddb", 0, node=f"{stage.namespace}-a")
    return stage


def asked_to_stop_at(stage: Stage) -> float:
    found = stopping(stage.found("Pod", NODES[0]))
    assert found is not None
    return found.asked_at


def test_the_tablespaces_of_a_deleted_pod_leave_it_one_after_the_other_though_the_operator_is_killed_after_each(three_led: Stage) -> None:
    stage = three_led
    stage.delete("Pod", NODES[0])
    asked_at = asked_to_stop_at(stage)

    def kill_at(now: float) -> None:
        def kill(what: str) -> None:
            stage.ensemble.changed_by_path[what.removeprefix("set ")] = now
            raise OperatorKilledError(what)

        stage.ensemble.written = kill
        with pytest.raises(OperatorKilledError):
            stage.reconcile_at(now, HERDDB, "db")
        stage.ensemble.written = lambda _: None

    roles = dict.fromkeys(OTHERS, ("leader", "follower"))
    for second, moved in enumerate((["flights"], ["flights", "weather"], ["flights", "weather", "herd"])):
        kill_at(asked_at + second)
        assert leads(stage, NODES[1]) == moved
        lead(stage, {**roles, moved[-1]: ("follower", "booting")})
        assert stage.reconcile_at(asked_at + second + 0.5, HERDDB, "db").outcome is Outcome.OK
        assert leads(stage, NODES[1]) == moved, "the next one waits until this one is led, and is led meanwhile"
        roles[moved[-1]] = ("follower", "leader")
        lead(stage, roles)


def test_the_tablespaces_of_a_deleted_pod_that_are_left_after_seconds_leave_it_at_once(three_led: Stage) -> None:
    three_led.delete("Pod", NODES[0])
    three_led.reconcile_at(asked_to_stop_at(three_led) + 8.0, HERDDB, "db")
    assert leads(three_led, NODES[1]) == list(OTHERS)


def test_the_tablespaces_of_a_pod_that_is_killed_soon_leave_it_at_once(three_led: Stage) -> None:
    three_led.of("Pod").delete(name=NODES[0], namespace=three_led.namespace, body={"gracePeriodSeconds": 5})
    three_led.reconcile(HERDDB, "db")
    assert leads(three_led, NODES[1]) == list(OTHERS)


def test_the_tablespaces_of_a_leader_that_ended_are_all_moved_at_once(three_led: Stage) -> None:
    three_led.nodes.herddb_is_gone(named(three_led), 0)
    three_led.reconcile(HERDDB, "db")
    assert leads(three_led, NODES[1]) == list(OTHERS)


def test_a_killed_leader_is_left_before_kubernetes_knows(stage: Stage) -> None:
    stage.nodes.herddb_is_gone(named(stage), 0)
    stage.reconcile(HERDDB, "db")
    assert leader(stage) == NODES[1]


def test_nothing_is_moved_while_zookeeper_is_silent(stage: Stage) -> None:
    stage.delete("Pod", NODES[0])
    stage.ensemble.silent = True
    stage.reconcile(HERDDB, "db")
    stage.ensemble.silent = False
    assert leader(stage) == NODES[0]


def test_nothing_is_moved_while_no_ledger_can_be_opened(stage: Stage) -> None:
    stage.set_status("BookKeeperCluster", "bk", {"readyBookies": 2})
    stage.delete("Pod", NODES[0])
    stage.reconcile(HERDDB, "db")
    assert leader(stage) == NODES[0]
    assert "2 writable bookies of the 3" in stage.found(HERDDB, "db")["status"]["message"]


def test_a_leader_that_ended_is_replaced_though_the_bookies_could_not_be_counted(stage: Stage) -> None:
    stage.set_status("BookKeeperCluster", "bk", {"readyBookies": None})
    ask(stage, NODES[1])
    stage.reconcile(HERDDB, "db")
    assert leader(stage) == NODES[0]
    stage.delete("Pod", NODES[0])
    stage.reconcile(HERDDB, "db")
    assert leader(stage) == NODES[1]


def test_a_requested_switchover_is_done_once_and_answered(stage: Stage) -> None:
    ask(stage, NODES[1])
    stage.reconcile(HERDDB, "db")
    assert leader(stage) == NODES[1]
    annotations = stage.found(TABLESPACE, "flights")["metadata"]["annotations"]
    assert names.SWITCHOVER_ANNOTATION not in annotations
    stage.reconcile(TABLESPACE, "flights")
    assert stage.found(TABLESPACE, "flights")["status"]["lastSwitchover"] == f"done: led by {NODES[1]}, since {NODES[1]} was requested"
    stage.nodes.herddb_holds(named(stage), "flights", "a-uuid", ("follower", "leader"))
    version = stage.ensemble.read(record_path(stage))
    stage.settle(HERDDB, "db")
    assert stage.ensemble.read(record_path(stage)) == version


def test_a_switchover_that_can_not_be_done_is_refused_with_the_reason(stage: Stage) -> None:
    stage.nodes.herddb_holds(named(stage), "flights", "a-uuid", ("leader", "booting"))
    ask(stage, NODES[1])
    stage.reconcile(HERDDB, "db")
    stage.reconcile(TABLESPACE, "flights")
    assert leader(stage) == NODES[0]
    assert stage.found(TABLESPACE, "flights")["status"]["lastSwitchover"] == f"refused: {NODES[1]} can't lead now: it is booting"


def test_an_operator_that_is_killed_after_the_move_answers_later_and_moves_no_second_time(stage: Stage) -> None:
    def kill(what: str) -> None:
        raise OperatorKilledError(what)

    ask(stage, NODES[1])
    stage.ensemble.written = kill
    with pytest.raises(OperatorKilledError):
        stage.reconcile(HERDDB, "db")
    stage.ensemble.written = lambda _: None
    assert leader(stage) == NODES[1]
    stage.nodes.herddb_holds(named(stage), "flights", "a-uuid", ("follower", "leader"))
    version = stage.ensemble.read(record_path(stage))
    stage.reconcile(HERDDB, "db")
    assert stage.ensemble.read(record_path(stage)) == version
    answer = stage.found(TABLESPACE, "flights")["metadata"]["annotations"][names.SWITCHOVER_ANSWER_ANNOTATION]
    assert answer == f"done: {NODES[1]} already leads"


def test_who_changes_the_record_first_wins_and_the_request_stays(stage: Stage) -> None:
    ask(stage, NODES[1])
    clients = stage.clients()
    read = stage.ensemble.read_changed

    def read_then_changed(path: str, wake: Wake | None = None) -> Znode | None:
        """HerdDB writes between the operator's read and its write."""
        found = read(path, wake)
        if path == record_path(stage):
            stage.ensemble.put(path, encode_tablespace(RECORD))
        return found

    stage.ensemble.read_changed = read_then_changed  # type: ignore[method-assign]
    assert stage.reconcile(HERDDB, "db", clients) == Result(Outcome.FAILED, 1.0)
    assert leader(stage) == NODES[0]
    assert stage.found(TABLESPACE, "flights")["metadata"]["annotations"][names.SWITCHOVER_ANNOTATION] == NODES[1]


def test_nodes_are_restarted_followers_first_and_leaders_after_they_were_relieved(stage: Stage) -> None:
    stage.patch(HERDDB, "db", {"spec": {"image": "herdkeeper/herddb:next"}})
    stage.settle(HERDDB, "db")
    generation = stage.found("StatefulSet", "db-herddb")["metadata"]["generation"]
    stage.set_status("StatefulSet", "db-herddb", {"replicas": 2, "observedGeneration": generation, "updateRevision": "new"})
    for node in NODES:
        stage.patch("Pod", node, {"metadata": {"labels": {"controller-revision-hash": "old"}}})

    stage.reconcile(HERDDB, "db")
    assert (stage.live("Pod", NODES[0]) is not None, stage.live("Pod", NODES[1])) == (True, None)
    stage.reconcile(HERDDB, "db")
    assert stage.live("Pod", NODES[0]) is not None, "the other one is not back yet"

    restarted(stage, 1)
    stage.reconcile(HERDDB, "db")
    assert leader(stage) == NODES[1]
    assert stage.live("Pod", NODES[0]) is not None, "it is restarted only once the new leader leads"
    stage.nodes.herddb_holds(named(stage), "flights", "a-uuid", ("booting", "leader"))
    documents = stage.nodes.documents[f"http://{named(stage).host(0)}:{names.HERDDB_HTTP_PORT}/tablespaces"]
    documents[0]["ready"] = False
    stage.reconcile(HERDDB, "db")
    assert stage.live("Pod", NODES[0]) is not None, "it is restarted only once it follows"

    stage.nodes.herddb_holds(named(stage), "flights", "a-uuid", ("follower", "leader"))
    stage.reconcile(HERDDB, "db")
    assert stage.live("Pod", NODES[0]) is None
    restarted(stage, 0)
    stage.settle(HERDDB, "db")
    with nothing_written(stage):
        stage.reconcile(HERDDB, "db")
    assert leader(stage) == NODES[1], "nothing is moved back"


def test_clients_get_a_service_and_a_secret_that_is_kept_in_step(stage: Stage) -> None:
    stage.settle(TABLESPACE, "flights")
    status = stage.found(TABLESPACE, "flights")["status"]
    assert (status["leaderService"], status["connectionSecret"], followed(stage)) == ("flights-leader", "flights-connection", NODES[0])
    template = stage.found("StatefulSet", "db-herddb")["spec"]["template"]
    stage.patch("Secret", "db-herddb-credentials", {"stringData": {"password": "another"}})
    stage.settle(TABLESPACE, "flights")
    stage.settle(HERDDB, "db")
    users = base64.b64decode(stage.found("Secret", "db-herddb-credentials")["data"]["users"]).decode()
    assert [(user.username, user.password) for user in decode_users(users)] == [("herdkeeper", "another")]
    assert stage.found("StatefulSet", "db-herddb")["spec"]["template"] == template, "the nodes take it up while they run"
    values = {key: base64.b64decode(value).decode() for key, value in stage.found("Secret", "flights-connection")["data"].items()}
    assert (values["password"], values["database"]) == ("another", "flights")
    assert (values["host"], values["port"]) == (f"flights-leader.{stage.namespace}.svc", "7000")
    assert values["url"].startswith(f"jdbc:herddb:zookeeper:{ZOOKEEPER_ADDRESS}/{stage.namespace}/db/herd?")
    for kind, key in ((HERDDB, "db"), (TABLESPACE, "flights")):
        with nothing_written(stage):
            stage.reconcile(kind, key)


def test_what_somebody_else_has_under_the_names_for_clients_is_left_alone(stage: Stage) -> None:
    for kind, name in (("Service", "taken-leader"), ("Secret", "taken-connection")):
        body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
        ports = {"spec": {"ports": [{"port": 80}]}} if kind == "Service" else {}
        stage.of(kind).create(body={**body, **ports}, namespace=stage.namespace)
    stage.declare(TABLESPACE, "taken", {"herdDBRef": {"name": "db"}})
    path = tablespace_path(named(stage).herd_root, "taken")
    stage.ensemble.put(path, encode_tablespace(TablespaceRecord("its-uuid", "taken", NODES[0], NODES, 1, 30_000)))
    stage.settle(TABLESPACE, "taken")
    stage.settle(HERDDB, "db")
    assert stage.condition(TABLESPACE, "taken") == ("False", "NameTaken")
    assert "selector" not in stage.found("Service", "taken-leader")["spec"]
    assert "data" not in stage.found("Secret", "taken-connection")


def holds(stage: Stage, *roles: str | None) -> None:
    """Each SQL node says that it holds a settled copy in this role, or none."""
    stage.nodes.herddb_holds(named(stage), "flights", "a-uuid", tuple(role or "" for role in roles))
    for number, role in enumerate(roles):
        if role is None:
            stage.nodes.documents[f"http://{named(stage).host(number)}:{names.HERDDB_HTTP_PORT}/tablespaces"] = []


def replicas(stage: Stage) -> tuple[str, ...]:
    found = stage.ensemble.read(record_path(stage))
    assert found is not None
    return tuple(sorted(decode_tablespace(found[0]).replicas))


def nodes(stage: Stage) -> int:
    return int(stage.found("StatefulSet", "db-herddb")["spec"]["replicas"])


def test_a_node_that_a_tablespace_names_by_now_is_not_forgotten(stage: Stage) -> None:
    root = named(stage).herd_root
    for node in (NODES[1], "db-herddb-7"):
        stage.ensemble.put(f"{root}/nodes/{node}")
        stage.ensemble.put(f"{root}/replicas/a-uuid/{node}")
        stage.ensemble.put(f"{root}/replicas/{node}/{node}")
        stage.ensemble.put(f"{root}/logPins/a-uuid/replica-{node}")
    with pytest.raises(EnsembleError, match=f"the tablespace flights names {NODES[1]}"):
        forget_node(stage.ensemble, ForgetNode(ZOOKEEPER_ADDRESS, root, NODES[1]))
    forget_node(stage.ensemble, ForgetNode(ZOOKEEPER_ADDRESS, root, "db-herddb-7"))
    assert stage.ensemble.children(f"{root}/nodes") == stage.ensemble.children(f"{root}/replicas/a-uuid") == (NODES[1],)
    assert stage.ensemble.children(f"{root}/replicas/db-herddb-7") is None
    assert stage.ensemble.children(f"{root}/logPins/a-uuid") == (f"replica-{NODES[1]}",)


def test_a_copy_more_goes_to_a_zone_that_has_none(stage: Stage) -> None:
    machines = {zone: f"{stage.namespace}-{zone}" for zone in ("a", "b")}
    for zone, machine in machines.items():
        stage.add_node(machine, {names.ZONE_LABEL: zone})
    stage.patch(HERDDB, "db", {"spec": {"replicas": 3}})
    stage.settle(HERDDB, "db")
    for number, zone in enumerate(("a", "a", "b")):
        if stage.live("Pod", f"db-herddb-{number}"):
            stage.of("Pod").delete(name=f"db-herddb-{number}", namespace=stage.namespace, body={"gracePeriodSeconds": 0})
        stage.serve("db-herddb", number, node=machines[zone])
    stage.ensemble.put(record_path(stage), encode_tablespace(TablespaceRecord("a-uuid", "flights", NODES[0], (NODES[0],), 1, 30_000)))
    holds(stage, "leader", None, None)
    stage.reconcile(TABLESPACE, "flights")
    assert replicas(stage) == (NODES[0], "db-herddb-2")


def test_a_sql_node_leaves_after_its_leadership_and_its_copy_and_comes_back(stage: Stage) -> None:
    last, record_of_last = "db-herddb-2", f"{named(stage).herd_root}/nodes/db-herddb-2"
    stage.patch(HERDDB, "db", {"spec": {"replicas": 3}})
    stage.settle(HERDDB, "db")
    stage.serve("db-herddb", 2)
    for node in (*NODES, last):
        stage.ensemble.put(f"{named(stage).herd_root}/nodes/{node}")
    stage.ensemble.put(record_path(stage), encode_tablespace(TablespaceRecord("a-uuid", "flights", last, (NODES[0], last), 1, 30_000)))
    holds(stage, "follower", None, "leader")
    stage.settle(HERDDB, "db")
    stage.settle(TABLESPACE, "flights")
    assert (leader(stage), replicas(stage)) == (last, (NODES[0], last))

    stage.patch(HERDDB, "db", {"spec": {"replicas": 2}})
    stage.reconcile(HERDDB, "db")
    assert (leader(stage), followed(stage), nodes(stage)) == (NODES[0], NODES[0], 3)
    assert stage.found(HERDDB, "db")["status"]["leavingNodes"] == [last]
    stage.reconcile(TABLESPACE, "flights")
    holds(stage, "leader", None, "follower")
    stage.reconcile(TABLESPACE, "flights")
    assert replicas(stage) == (*NODES, last), "a copy more comes first"
    stage.reconcile(TABLESPACE, "flights")
    assert replicas(stage) == (*NODES, last), "until it is settled, none goes"
    holds(stage, "leader", "follower", "follower")
    stage.settle(HERDDB, "db")
    assert nodes(stage) == 3
    stage.settle(TABLESPACE, "flights")
    assert replicas(stage) == NODES
    stage.settle(HERDDB, "db")
    assert nodes(stage) == 2
    assert stage.ensemble.read(record_of_last) is not None, "its process may still run"
    stage.delete("Pod", last)
    stage.settle(HERDDB, "db")
    assert stage.ensemble.read(record_of_last) is None
    for kind, name in ((HERDDB, "db"), (TABLESPACE, "flights")):
        stage.settle(kind, name)
        with nothing_written(stage):
            stage.reconcile(kind, name)

    stage.patch(HERDDB, "db", {"spec": {"replicas": 3}})
    stage.settle(HERDDB, "db")
    assert nodes(stage) == 3


def restarted(stage: Stage, number: int) -> None:
    """The StatefulSet's controller makes the pod anew, and it serves."""
    status = stage.found("StatefulSet", "db-herddb")["status"]
    stage.serve("db-herddb", number)
    stage.set_status("StatefulSet", "db-herddb", status)
    stage.dynamic.request(
        "patch",
        stage.of("Pod").path(name=NODES[number], namespace=stage.namespace),
        body={"metadata": {"labels": {"controller-revision-hash": "new"}}},
        content_type=MERGE_PATCH,
    )
