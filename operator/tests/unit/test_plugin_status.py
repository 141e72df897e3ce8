"""`kubectl herdkeeper status`: what stands in the tree, and what is told as wrong."""

from __future__ import annotations

import datetime

import pytest
from played_cluster import PlayedCluster, called, condition, pod, resource, stack

from herdkeeper.plugin.cluster import ForbiddenError, NoAnswerError
from herdkeeper.plugin.command import FINE, WRONG, BadInputError
from herdkeeper.shared.time import text_of


def status(*documents: dict, **options: bool) -> str:
    answer, _ = called(PlayedCluster(list(documents)), "status", **options)
    return answer.text


def line_of(text: str, words: str) -> str:
    return next(line for line in text.splitlines() if words in line)


def not_ready(kind: str, name: str, reason: str, message: str, spec: dict | None = None) -> dict:
    conditions = [condition("Ready", "False", reason, message), condition("Progressing", "True", reason, message)]
    return resource(kind, name, spec, conditions=conditions, message=message)


def test_each_resource_stands_below_the_one_that_it_rests_on_and_pods_below_their_resource() -> None:
    text = status(*stack())
    assert text.splitlines() == [
        "namespace demo",
        "└── ✔ ZooKeeperCluster/zk  all serve",
        "    ├── ✔ zk-zookeeper-0  worker, leader",
        "    └── ✔ BookKeeperCluster/bk  all serve",
        "        ├── ✔ bk-bookie-0-0  worker, writable",
        "        └── ✔ HerdDBCluster/db  all serve",
        "            ├── ✔ db-herddb-0  worker",
        "            ├── ✔ db-herddb-1  worker",
        "            └── ✔ Tablespace/flights  all serve",
        "                ├── ✔ leader on db-herddb-0",
        "                └── ✔ follower on db-herddb-1",
    ]


def test_all_is_fine_with_exit_code_0_and_anything_wrong_gives_1() -> None:
    assert called(PlayedCluster(stack()), "status")[0].exit_code == FINE
    broken = [*stack(), not_ready("Tablespace", "orders", "NoLeader", "nobody leads", {"herdDBRef": {"name": "db"}})]
    assert called(PlayedCluster(broken), "status")[0].exit_code == WRONG


def test_what_is_wrong_is_told_with_its_reason_once_and_with_what_to_do() -> None:
    text = status(not_ready("Tablespace", "flights", "InvalidSpec", "spec.replicas is 9"))
    assert line_of(text, "Tablespace/flights") == "└── ✘ Tablespace/flights  InvalidSpec: spec.replicas is 9"
    assert text.count("spec.replicas is 9") == 1
    assert "→ Change the field that the message names. (explain InvalidSpec)" in text


def test_a_condition_besides_ready_that_does_not_hold_is_told_below_the_resource() -> None:
    item = resource("Tablespace", "flights")
    item["status"]["conditions"].append(condition("LogReleased", "False", "LogRetained", "3 ledgers are kept"))
    assert "LogReleased: LogRetained: 3 ledgers are kept" in status(item)


def test_what_is_done_or_waited_for_is_told_and_is_not_wrong() -> None:
    item = resource("BookKeeperCluster", "bk")
    item["status"]["conditions"][1] = condition("Progressing", "True", "Draining", "bk-bookie-3 is emptied")
    answer, _ = called(PlayedCluster([item]), "status")
    assert line_of(answer.text, "bk") == "└── ● BookKeeperCluster/bk  all serve; Draining: bk-bookie-3 is emptied"
    assert answer.exit_code == FINE


def test_that_somebody_stopped_a_resource_is_told_so_that_it_is_not_forgotten() -> None:
    item = resource("BookKeeperCluster", "bk")
    item["status"]["conditions"][1] = condition("Progressing", "False", "Paused", "an annotation stops every change")
    answer, _ = called(PlayedCluster([item]), "status")
    assert line_of(answer.text, "bk") == "└── ✔ BookKeeperCluster/bk  all serve; Paused: an annotation stops every change"
    assert answer.exit_code == FINE


@pytest.mark.parametrize("reason", ["ActionFailed", "NodeLost"])
def test_what_is_waited_for_is_wrong_when_it_does_not_go_on_by_itself(reason: str) -> None:
    item = resource("BookKeeperCluster", "bk")
    item["status"]["conditions"][1] = condition("Progressing", "True", reason, "it says why")
    assert called(PlayedCluster([item]), "status")[0].exit_code == WRONG


def test_a_resource_that_the_operator_has_not_seen_as_it_is_now_is_wrong() -> None:
    item = resource("Tablespace", "flights")
    item["metadata"]["generation"] = 2
    assert "has not seen its current generation" in status(item)
    assert "has not reconciled it yet" in status({**item, "status": {}})


def test_a_stack_that_is_being_made_is_not_wrong_until_five_minutes_are_over() -> None:
    database = not_ready("HerdDBCluster", "db", "WaitingForBookKeeper", "no bookie serves yet", {"bookKeeperRef": {"name": "bk"}})
    database["status"]["conditions"].append(condition("UsersInForce", "False", "UsersChanging", "no node has them yet"))
    unseen = resource("Tablespace", "flights", {"herdDBRef": {"name": "db"}}) | {"status": {}}
    made = [not_ready("BookKeeperCluster", "bk", "Starting", "0 of 3 bookies are writable"), database, unseen]
    answer, _ = called(PlayedCluster([young(item, 290) for item in made]), "status")
    assert answer.text.splitlines()[1:] == [
        "└── ● BookKeeperCluster/bk  0 of 3 bookies are writable",
        "    └── ● HerdDBCluster/db  no bookie serves yet",
        "        └── ● Tablespace/flights  the operator has not reconciled it yet",
    ]
    assert answer.exit_code == FINE
    answer, _ = called(PlayedCluster([young(item, 310) for item in made]), "status")
    assert (answer.text.count("✘"), answer.exit_code) == (3, WRONG)


@pytest.mark.parametrize("reason", ["InvalidSpec", "ActionFailed"])
def test_a_new_resource_that_will_not_become_ready_by_itself_is_wrong_at_once(reason: str) -> None:
    assert called(PlayedCluster([young(not_ready("Tablespace", "flights", reason, "it says why"))]), "status")[0].exit_code == WRONG


def test_a_pod_that_does_not_serve_says_why() -> None:
    waiting = [{"name": "server", "ready": False, "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]
    text = status(
        resource("ZooKeeperCluster", "zk"),
        pod("zk-zookeeper-0", "zookeeper", "ZooKeeperCluster/zk", ready=False, containerStatuses=waiting),
    )
    assert "✘ zk-zookeeper-0  worker" in text
    assert "ImagePullBackOff no such image" in text


def young(item: dict, seconds: float = 0) -> dict:
    item["metadata"]["creationTimestamp"] = text_of(datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds))
    return item


def test_a_pod_that_has_only_just_begun_to_start_is_not_wrong_until_two_minutes_are_over() -> None:
    owner, starting = resource("BookKeeperCluster", "bk"), pod("bk-autorecovery-x", "autorecovery", "BookKeeperCluster/bk", ready=False)
    answer, _ = called(PlayedCluster([owner, young(starting)]), "status")
    assert ("● bk-autorecovery-x  worker, starting" in answer.text, answer.exit_code) == (True, FINE)
    answer, _ = called(PlayedCluster([owner, young(starting, 121)]), "status")
    assert ("✘ bk-autorecovery-x" in answer.text, answer.exit_code) == (True, WRONG)


def rolled(*pods: dict) -> tuple[str, int]:
    """A stack of which a SQL node restarts, as the operator tells it."""
    replicas = [{"role": "leader", "node": "db-herddb-0"}]
    documents = [
        not_ready("HerdDBCluster", "db", "NodesNotReady", "1 of 2 nodes is Ready"),
        not_ready("Tablespace", "flights", "ReplicasNotReady", "1 of 2 replicas follows", {"herdDBRef": {"name": "db"}}),
    ]
    documents[1]["status"]["replicas"] = replicas
    answer, _ = called(PlayedCluster([*documents, *pods]), "status")
    return answer.text, answer.exit_code


def test_what_waits_for_a_server_that_restarts_is_not_wrong_until_two_minutes_are_over() -> None:
    restarts = pod("db-herddb-1", "herddb", "HerdDBCluster/db", ready=False)
    text, code = rolled(young(restarts))
    assert [line.strip("│├└─ ").split("  ")[0] for line in text.splitlines()] == [
        "namespace demo",
        "● HerdDBCluster/db",
        "● db-herddb-1",
        "● Tablespace/flights",
        "✔ leader on db-herddb-0",
    ]
    assert code == FINE
    text, code = rolled(young(restarts, 121))
    assert (text.count("✘"), code) == (3, WRONG)


def test_a_status_that_comes_a_moment_after_its_pod_is_not_wrong() -> None:
    def ready_since(seconds: float) -> int:
        since = text_of(datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds))
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
        return rolled(pod("db-herddb-1", "herddb", "HerdDBCluster/db", conditions=conditions))[1]

    assert (ready_since(5), ready_since(60)) == (FINE, WRONG)


def test_a_server_that_restarts_hides_nothing_that_needs_a_person_and_no_other_one_that_does_not_serve() -> None:
    restarts = young(pod("bk-bookie-0-0", "bookie", "BookKeeperCluster/bk", ready=False))
    lost = not_ready("BookKeeperCluster", "bk", "DataLost", "bk-bookie-1 has an empty disk")
    assert called(PlayedCluster([lost, restarts]), "status")[0].exit_code == WRONG
    waits = not_ready("BookKeeperCluster", "bk", "BookiesNotReady", "1 of 3 bookies is writable")
    other = young(pod("bk-bookie-1-0", "bookie", "BookKeeperCluster/bk", ready=False), 900)
    assert called(PlayedCluster([waits, restarts]), "status")[0].exit_code == FINE
    assert called(PlayedCluster([waits, restarts, other]), "status")[0].exit_code == WRONG


def test_a_job_that_starts_does_not_make_a_stack_that_does_not_serve_one_that_restarts() -> None:
    drain = young(pod("bk-bookie-3-drain-1-x", "drain", "BookKeeperCluster/bk", ready=False))
    drain["metadata"]["labels"]["batch.kubernetes.io/job-name"] = "bk-bookie-3-drain-1"
    waits = not_ready("BookKeeperCluster", "bk", "BookiesNotReady", "1 of 3 bookies is writable")
    assert called(PlayedCluster([waits, drain]), "status")[0].exit_code == WRONG


def test_without_a_running_operator_it_is_told_that_all_may_be_old() -> None:
    answer, _ = called(PlayedCluster(stack(), elsewhere=[]), "status")
    assert answer.text.endswith(
        "operator: it has no pod in the namespace herdkeeper-system\n"
        "    → Install it, or name its namespace with --operator-namespace.\n"
        "    What is shown may be old."
    )
    assert answer.document["operator"] == "it has no pod in the namespace herdkeeper-system"
    assert answer.exit_code == FINE, "it may be in another namespace"
    answer, _ = called(PlayedCluster(stack(), elsewhere=[pod("operator-1", "herdkeeper-operator", "none/none", ready=False)]), "status")
    assert "operator operator-1: " in answer.text


def test_who_may_not_see_the_operator_is_told_that_nothing_is_known_of_it() -> None:
    class Refusing(PlayedCluster):
        def in_namespace(self, namespace: str) -> PlayedCluster:
            raise ForbiddenError("pods is forbidden")

    answer, _ = called(Refusing(stack()), "status")
    assert (answer.text.splitlines()[-1], answer.exit_code) == ("Whether the operator runs is unknown: pods is forbidden", FINE)


def test_a_young_pod_whose_image_is_not_there_is_wrong_at_once() -> None:
    waiting = [{"name": "server", "ready": False, "state": {"waiting": {"reason": "ImagePullBackOff"}}}]
    failing = young(pod("bk-autorecovery-x", "autorecovery", "BookKeeperCluster/bk", ready=False, containerStatuses=waiting))
    assert "✘ bk-autorecovery-x" in status(resource("BookKeeperCluster", "bk"), failing)


def test_a_pod_that_stops_is_not_wrong_until_its_time_for_it_is_over() -> None:
    def stops(seconds: float) -> str:
        item = pod("bk-bookie-5-0", "bookie", "BookKeeperCluster/bk", ready=False)
        item["metadata"]["deletionTimestamp"] = text_of(datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds))
        return status(resource("BookKeeperCluster", "bk"), item)

    assert "● bk-bookie-5-0  worker, stopping" in stops(20)
    assert "✘ bk-bookie-5-0" in stops(-5)


def evicted(name: str, component: str, owner: str, day: int, job: str | None = None) -> dict:
    item = pod(name, component, owner, ready=False, phase="Failed", reason="Evicted", message="the node was low on memory")
    item["metadata"]["creationTimestamp"] = f"2026-11-{day:02}T14:30:00Z"
    if job is not None:
        item["metadata"]["labels"]["batch.kubernetes.io/job-name"] = job
    return item


def test_a_pod_that_failed_and_was_replaced_is_not_wrong() -> None:
    """Kubernetes keeps each evicted pod of a Deployment, and each try of a Job."""
    owner, audit = (
        resource("BookKeeperCluster", "bk"),
        resource("ReplicationAudit", "a", {"bookKeeperRef": {"name": "bk"}}, phase="Succeeded"),
    )
    gone = [
        evicted("bk-autorecovery-a", "autorecovery", "BookKeeperCluster/bk", 1),
        evicted("a-x", "audit", "ReplicationAudit/a", 1, "a-audit"),
    ]
    replacing = [
        pod("bk-autorecovery-b", "autorecovery", "BookKeeperCluster/bk"),
        pod("a-y", "audit", "ReplicationAudit/a", phase="Succeeded"),
    ]
    for item in replacing:
        item["metadata"]["creationTimestamp"] = "2026-11-02T14:30:00Z"
    replacing[1]["metadata"]["labels"] |= {"batch.kubernetes.io/job-name": "a-audit"}
    answer, _ = called(PlayedCluster([owner, audit, *gone, *replacing]), "status")
    assert answer.text.splitlines() == [
        "namespace demo",
        "└── ✔ BookKeeperCluster/bk  all serve",
        "    ├── ✔ bk-autorecovery-b  worker",
        "    └── ✔ ReplicationAudit/a  all serve",
    ]
    assert answer.exit_code == FINE
    assert (
        called(PlayedCluster([owner, audit, *gone, *replacing], elsewhere=[pod("o", "herdkeeper-operator", "a/b")]), "doctor")[0].exit_code
        == FINE
    )


@pytest.mark.parametrize("stateful", [True, False])
def test_a_pod_that_failed_and_has_no_successor_says_why(stateful: bool) -> None:
    failed, other = (evicted(f"bk-x-{number}", "bookie", "BookKeeperCluster/bk", number) for number in (1, 2))
    if stateful:
        other = pod("bk-x-2", "bookie", "BookKeeperCluster/bk")
        other["metadata"]["creationTimestamp"] = "2026-11-02T14:30:00Z"
        for item in (failed, other):
            item["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = item["metadata"]["name"]
    answer, _ = called(PlayedCluster([resource("BookKeeperCluster", "bk"), failed, other]), "status")
    assert (answer.text.count("Evicted: the node was low on memory"), answer.exit_code) == (1, WRONG)


def test_a_resource_that_is_being_deleted_says_what_it_waits_for_once_the_operator_has_looked() -> None:
    item = resource("ZooKeeperCluster", "zk")
    item["metadata"] |= {"deletionTimestamp": "2026-11-21T14:30:00Z", "generation": 2}
    item["status"]["conditions"][1] = condition("Progressing", "True", "Rolling", "zk-zookeeper-1 restarts")
    assert line_of(status(item), "zk").endswith("is being deleted")
    item["metadata"]["generation"] = 1
    item["status"]["conditions"][1] = condition("Progressing", "True", "WaitingForDependents", "first delete BookKeeperCluster bk")
    assert line_of(status(item), "zk").endswith("is being deleted; WaitingForDependents: first delete BookKeeperCluster bk")


def test_what_ready_tells_is_not_told_by_progressing_again() -> None:
    item = run_of("first", "2026-01-01T00:00:00Z", "Failed", "Failed")
    item["status"]["conditions"].append(condition("Progressing", "False", "Failed", "nothing is left to do"))
    assert "nothing is left to do" not in status(item)


def test_a_copy_with_other_rows_is_wrong() -> None:
    replicas = [{"role": "follower", "node": "db-herddb-1", "verdict": "Different", "verifiedLsn": {"ledgerId": 7, "entryId": 14}}]
    text = status(resource("Tablespace", "flights", replicas=replicas))
    assert "✘ follower on db-herddb-1  differs from the log or the leader at LSN 7,14" in text


def run_of(name: str, created: str, phase: str, reason: str, ready: str = "False") -> dict:
    item = resource("Checkpoint", name, {"tablespaceRef": {"name": "flights"}}, phase=phase, message=f"{name} {phase}")
    item["status"]["conditions"] = [condition("Ready", ready, reason, f"{name} {phase}")]
    item["metadata"]["creationTimestamp"] = created
    return item


def test_of_runs_the_newest_and_those_that_are_not_over_stand_there() -> None:
    runs = [
        run_of("first", "2026-01-01T00:00:00Z", "Failed", "Failed"),
        run_of("second", "2026-01-02T00:00:00Z", "Running", "Running"),
        run_of("third", "2026-01-03T00:00:00Z", "Succeeded", "Succeeded", "True"),
    ]
    answer, _ = called(PlayedCluster([*stack(), *runs]), "status")
    assert "Checkpoint/first" not in answer.text
    assert "● Checkpoint/second" in answer.text
    assert "✔ Checkpoint/third" in answer.text
    assert answer.exit_code == FINE
    assert called(PlayedCluster([*stack(), runs[0]]), "status")[0].exit_code == WRONG


def test_what_refers_to_a_resource_that_is_not_there_stands_at_the_root() -> None:
    assert status(resource("HerdDBCluster", "db", {"bookKeeperRef": {"name": "gone"}})).splitlines()[1].startswith("└── ✔ HerdDBCluster/db")


def test_the_document_has_what_the_text_has() -> None:
    answer, _ = called(PlayedCluster([not_ready("Tablespace", "flights", "InvalidSpec", "spec.replicas is 9")]), "status")
    (tablespace,) = answer.document["stacks"]
    assert answer.document["state"] == tablespace["state"] == "wrong"
    assert tablespace["troubles"][0]["reason"] == "InvalidSpec"


def test_an_empty_namespace_is_said_to_be_empty() -> None:
    assert "nothing of herdkeeper.io in the namespace demo" in status()


def test_colours_are_for_terminals_only() -> None:
    assert "\x1b[" not in status(*stack())
    assert "\x1b[32m✔\x1b[0m" in status(*stack(), colours=True)


class EnoughError(Exception):
    """The test has seen enough."""


def test_watch_writes_again_only_what_has_changed() -> None:
    cluster = PlayedCluster(stack())
    looks = 0

    def pause(_: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 2:
            cluster.documents[0]["status"]["message"] = "one is away"
        if looks == 3:
            raise EnoughError

    written: list[str] = []
    with pytest.raises(EnoughError):
        called(cluster, "status", "--watch", pause=pause, written=written)
    assert [text.count("namespace demo") for text in written] == [1, 1]
    assert "one is away" in written[1]


def test_watch_goes_on_when_the_api_server_was_away() -> None:
    looks: list[int] = []

    class AbsentCluster(PlayedCluster):
        def list(self, kind):
            if len(looks) in (1, 2):
                raise NoAnswerError("the API server does not answer")
            return super().list(kind)

    def pause(_: float) -> None:
        looks.append(1)
        if len(looks) == 4:
            raise EnoughError

    written: list[str] = []
    with pytest.raises(EnoughError):
        called(AbsentCluster(stack()), "status", "--watch", pause=pause, written=written)
    tree, absent, again = written
    assert absent == f"{tree}\nthe API server does not answer"
    assert again == tree
    looks[:] = [1]
    with pytest.raises(NoAnswerError):
        called(AbsentCluster(stack()), "status", "--watch")


def test_watch_has_no_documents() -> None:
    with pytest.raises(BadInputError, match="--output json"):
        called(PlayedCluster(), "status", "--watch", "-o", "json")
