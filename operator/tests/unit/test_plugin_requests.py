"""`run-now`, `full-check`, `rescan_after_seconds`, `resume` and `restart`: what they ask the operator for, and when that is done."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from played_cluster import Json, PlayedCluster, called, condition, resource, stack

from herdkeeper.plugin import request
from herdkeeper.plugin.cluster import NoAnswerError
from herdkeeper.plugin.command import FINE, WRONG, BadInputError


def schedules() -> list[dict]:
    kinds = ("ScheduledCheckpoint", "ScheduledReplicationAudit")
    return [resource(kind, name) for kind, own in zip(kinds, ("nightly", "weekly"), strict=True) for name in (own, "both")]


def annotations_set(cluster: PlayedCluster) -> list[tuple[str, str, dict]]:
    return [(kind, name, body["metadata"]["annotations"]) for _, kind, name, body, _ in cluster.writes]


@pytest.mark.parametrize(
    ("written", "kind", "name"),
    [
        ("nightly", "ScheduledCheckpoint", "nightly"),
        ("weekly", "ScheduledReplicationAudit", "weekly"),
        ("sraudit/both", "ScheduledReplicationAudit", "both"),
    ],
)
def test_run_now_takes_a_schedule_of_either_kind(written: str, kind: str, name: str) -> None:
    cluster = PlayedCluster(schedules())
    assert called(cluster, "run-now", written)[0].exit_code == FINE
    assert annotations_set(cluster) == [(kind, name, {"herdkeeper.io/run-now": "yes", "herdkeeper.io/run-now-answer": None})]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("both", "SCHEDULE both: there are two; write ScheduledCheckpoint/both or ScheduledReplicationAudit/both"),
        ("hourly", "SCHEDULE hourly: there is no schedule of that name in the namespace demo; there are nightly, both, weekly, both"),
        ("ts/flights", "SCHEDULE ts/flights: a Tablespace is not a schedule; name a ScheduledCheckpoint or ScheduledReplicationAudit"),
    ],
)
def test_run_now_names_the_schedules_that_there_are(written: str, message: str) -> None:
    with pytest.raises(BadInputError) as refused:
        called(PlayedCluster([*schedules(), *stack()]), "run-now", written)
    assert str(refused.value) == message


def test_a_request_that_nobody_answered_is_told_to_stay_with_the_way_to_take_it_back() -> None:
    cluster = PlayedCluster(schedules())
    answer, _ = called(cluster, "run-now", "nightly", "--wait", "--timeout", "2")
    assert (answer.exit_code, "no result within 2 s" in answer.text) == (WRONG, True)
    assert cluster.documents[0]["metadata"]["annotations"] == {"herdkeeper.io/run-now": "yes"}
    way = "kubectl annotate scheduledcheckpoint nightly --namespace demo herdkeeper.io/run-now-"
    assert answer.text.endswith(f"the request stays until the operator answers it; to take it back: {way}")
    assert answer.document["outcome"].endswith(way)


def test_roll_authorities_asks_the_ensemble_that_there_is() -> None:
    cluster = PlayedCluster(stack())
    assert called(cluster, "roll-authorities", "zk")[0].exit_code == FINE
    asked = {"herdkeeper.io/roll-authorities": "now", "herdkeeper.io/roll-authorities-answer": None}
    assert annotations_set(cluster) == [("ZooKeeperCluster", "zk", asked)]
    with pytest.raises(BadInputError):
        called(cluster, "roll-authorities", "other")


def test_run_now_waits_for_the_operator_s_answer() -> None:
    cluster = PlayedCluster(schedules())

    def pause(_: float) -> None:
        cluster.documents[0]["metadata"]["annotations"] = {"herdkeeper.io/run-now-answer": "refused: one is not over"}

    told, _ = called(cluster, "run-now", "nightly", "--wait", pause=pause)
    assert (told.exit_code, told.text) == (WRONG, "ScheduledCheckpoint/nightly: refused: one is not over")
    assert "run" not in told.document


class AbsentCluster(PlayedCluster):
    """The API server answers so many times, and then not so many times. Each time takes some seconds."""

    answers, silences, seconds, now = 1, 3, 0, 0

    def get(self, kind, name) -> Json | None:
        self.now += self.seconds
        self.answers -= 1
        if -self.silences <= self.answers < 0:
            raise NoAnswerError("the API server at there does not answer: connection refused")
        return super().get(kind, name)


def test_an_api_server_that_is_away_for_a_while_ends_no_wait() -> None:
    cluster = AbsentCluster(stack())
    done = {"herdkeeper.io/switchover-answer": "done: led by db-herddb-1"}

    def pause(_: float) -> None:
        tablespace = cluster.documents[3]
        tablespace["metadata"]["annotations"], tablespace["status"]["leader"] = done, "db-herddb-1"

    answer, written = called(cluster, "switchover", "flights", "db-herddb-1", "--wait", pause=pause)
    assert (answer.exit_code, cluster.answers < -cluster.silences) == (FINE, True), answer.text
    assert written.count("the API server does not answer; it is asked again") == 1


def test_one_that_stays_away_is_told_when_the_time_is_over() -> None:
    cluster = AbsentCluster(stack())
    cluster.silences = 10
    cluster.documents.append(resource("ScheduledCheckpoint", "nightly"))
    answer, _ = called(cluster, "run-now", "ScheduledCheckpoint/nightly", "--wait", "--timeout", "9")
    assert (answer.exit_code, answer.text.endswith("--namespace demo herdkeeper.io/run-now-")) == (WRONG, True)
    cluster.answers = 1
    answer, _ = called(cluster, "restart", "bkc/bk", "--wait", "--timeout", "9")
    assert (answer.exit_code, "no result within 9 s; the API server at there does not answer: connection refused" in answer.text) == (
        WRONG,
        True,
    )


def test_a_slow_api_server_makes_no_wait_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = AbsentCluster(stack())
    cluster.answers, cluster.seconds = 1000, 30
    monkeypatch.setattr(request, "time", SimpleNamespace(monotonic=lambda: cluster.now))
    answer, _ = called(cluster, "restart", "bkc/bk", "--wait", "--timeout", "120")
    assert (answer.exit_code, cluster.now) == (WRONG, 30 * 5)


@pytest.mark.parametrize(
    ("schedule", "kind", "phase", "findings", "exit_code"),
    [
        ("nightly", "Checkpoint", "Succeeded", 0, FINE),
        ("nightly", "Checkpoint", "Failed", 0, WRONG),
        ("weekly", "ReplicationAudit", "Succeeded", 0, FINE),
        ("weekly", "ReplicationAudit", "Succeeded", 3, WRONG),
    ],
)
def test_run_now_waits_for_the_end_of_the_run_that_was_made(schedule: str, kind: str, phase: str, findings: int, exit_code: int) -> None:
    cluster = PlayedCluster(schedules())
    asked = next(item for item in cluster.documents if item["metadata"]["name"] == schedule)
    made = resource(kind, f"{schedule}-20261121", message="the job has not started yet")

    def pause(_: float) -> None:
        if made not in cluster.documents:
            asked["metadata"]["annotations"] = {"herdkeeper.io/run-now-answer": f"done: {schedule}-20261121"}
            cluster.documents.append(made)
        elif made["status"]["message"] == "the job has not started yet":
            made["status"]["message"] = "the job is running"
        else:
            made["status"] |= {"phase": phase, "findingsTotal": findings, "message": "it is over"}

    told, written = called(cluster, "run-now", schedule, "--wait", pause=pause)
    assert (told.exit_code, told.text) == (exit_code, f"{kind}/{schedule}-20261121: it is over")
    assert f"{kind}/{schedule}-20261121: the job is running" in written
    assert told.document["run"] == f"{schedule}-20261121"


BEGUN = {"startedAt": "2026-11-21T14:30:00Z", "leader": "db-herddb-0", "tables": [{"name": "t"}], "completedAt": "2026-11-21T14:31:00Z"}


@pytest.mark.parametrize(
    ("check", "exit_code", "said"),
    [
        ({**BEGUN, "replicas": [{"node": "db-herddb-1", "verdict": "Passed"}]}, FINE, "db-herddb-1 had the leader's rows of 1 table"),
        (
            {**BEGUN, "replicas": [{"node": "db-herddb-1", "verdict": "Failed", "differentTables": ["t"]}]},
            WRONG,
            "other rows than the leader db-herddb-0: db-herddb-1 in t",
        ),
        ({**BEGUN, "error": "a statement ran"}, WRONG, "it ended early: a statement ran"),
        (
            {**BEGUN, "replicas": [{"node": "db-herddb-1", "verdict": "Passed"}], "notChecked": [{"name": "u", "why": "no key"}]},
            WRONG,
            "not checked: u (no key)",
        ),
    ],
)
def test_full_check_waits_for_a_new_check_and_for_each_follower(check: dict, exit_code: int, said: str) -> None:
    cluster = PlayedCluster(stack())
    tablespace = next(item for item in cluster.documents if item["kind"] == "Tablespace")
    earlier = {**BEGUN, "startedAt": "2026-11-14T00:00:00Z", "replicas": [{"node": "db-herddb-1", "verdict": "Failed"}]}
    tablespace["status"]["fullCheck"] = earlier
    under_way = {**BEGUN, "completedAt": None, "replicas": [{"node": "db-herddb-1", "verdict": "NotAnswered"}]}
    told = iter([earlier, under_way, check])

    def pause(_: float) -> None:
        tablespace["metadata"]["annotations"] = {"herdkeeper.io/full-check-answer": "done: begun"}
        tablespace["status"]["fullCheck"] = next(told)

    answer, _ = called(cluster, "full-check", "flights", "--wait", pause=pause)
    assert (answer.exit_code, said in answer.text) == (exit_code, True)


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({"paused": "true"}, "the operator continues"),
        ({"paused": "true", "plan": "true"}, "the operator continues, and carries out what its plan shows"),
        ({"paused": "false", "plan": "false"}, "it was not paused; the operator goes on"),
        ({}, "it was not paused; the operator goes on"),
    ],
)
def test_resume_says_what_happens_then(annotations: dict[str, str], said: str) -> None:
    """A plan that somebody looks at has that person's change, which they would take back."""
    documents = stack()
    documents[1]["metadata"]["annotations"] = {f"herdkeeper.io/{name}": value for name, value in annotations.items()}
    assert called(PlayedCluster(documents), "resume", "bkc/bk")[0].text == f"BookKeeperCluster/bk: {said}"


def test_pause_and_resume_set_and_take_off_the_annotation_and_resume_ends_a_plan_too() -> None:
    cluster = PlayedCluster(stack())
    called(cluster, "pause", "bkc/bk")
    assert cluster.documents[1]["metadata"]["annotations"] == {"herdkeeper.io/paused": "true"}
    cluster.documents[1]["metadata"]["annotations"]["herdkeeper.io/plan"] = "true"
    called(cluster, "resume", "BookKeeperCluster/bk")
    assert cluster.documents[1]["metadata"]["annotations"] == {}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("pause", "bk"), "RESOURCE bk: name a resource as KIND/NAME, e.g. ZooKeeperCluster/bk"),
        (("pause", "pod/bk"), "RESOURCE pod/bk: there is no kind pod; there are ZooKeeperCluster (zkc), BookKeeperCluster (bkc),"),
        (("resume", "bkc/bkk"), "RESOURCE bkk: no BookKeeperCluster of that name exists in the namespace demo; there is bk"),
        (
            ("restart", "ts/flights"),
            "RESOURCE ts/flights: a Tablespace has no servers; name a ZooKeeperCluster, BookKeeperCluster, HerdDBCluster",
        ),
    ],
)
def test_bad_input_is_named_with_its_value_and_the_fix(words: tuple[str, ...], message: str) -> None:
    cluster = PlayedCluster(stack())
    with pytest.raises(BadInputError) as refused:
        called(cluster, *words)
    assert message in str(refused.value)
    assert cluster.writes == []


@pytest.mark.parametrize(
    ("words", "number", "sentence"),
    [
        (("restart", "bkc/bk"), 1, "BookKeeperCluster/bk: its servers are restarted one by one, each once the previous one serves"),
        (("drain", "bk-bookie-0"), 1, "BookKeeperCluster/bk: bookie 0 will be drained"),
        (("full-check", "flights"), 3, "Tablespace/flights: a full check was requested"),
    ],
)
@pytest.mark.parametrize(
    ("mark", "value", "note"),
    [
        ("herdkeeper.io/paused", "true", "; herdkeeper.io/paused stops this until you `resume {label}`"),
        ("herdkeeper.io/plan", "true", "; herdkeeper.io/plan stops this until you `resume {label}`"),
        ("herdkeeper.io/paused", "false", ""),
    ],
)
def test_what_a_paused_resource_does_only_later_is_said_so(
    words: tuple[str, ...], number: int, sentence: str, mark: str, value: str, note: str
) -> None:
    documents = stack()
    documents[number]["metadata"]["annotations"] = {mark: value}
    answer, _ = called(PlayedCluster(documents), *words)
    label, _, what = f"{sentence}{note}".partition(": ")
    assert answer.text == f"{label}: {what.format(label=label)}"
    assert answer.document["changes"][0]["what"] == what.format(label=label)


def test_what_a_resource_that_is_being_deleted_does_not_do_is_said_so() -> None:
    documents = stack()
    documents[1]["metadata"]["deletionTimestamp"] = "2026-11-21T14:30:00Z"
    answer, _ = called(PlayedCluster(documents), "restart", "bkc/bk")
    assert answer.text.endswith("; it is being deleted, so this is not done any more")
    for command in ("pause", "resume"):
        assert "this" not in called(PlayedCluster(documents), command, "bkc/bk")[0].text


def test_restart_changes_the_template_of_the_pods_and_waits_until_all_is_settled_for_it() -> None:
    cluster = PlayedCluster(stack())
    database = cluster.documents[2]
    steps = iter([("Rolling", 1), ("Rolling", 2), ("Settled", 2)])

    def pause(_: float) -> None:
        reason, observed = next(steps)
        database["metadata"]["generation"] = 2
        database["status"]["conditions"][1] = {**condition("Progressing", "True", reason, "m"), "observedGeneration": observed}

    answer, _ = called(cluster, "restart", "hdb/db", "--wait", pause=pause)
    assert list(database["spec"]["pods"]["annotations"]) == ["kubectl.kubernetes.io/restartedAt"]
    assert answer.exit_code == FINE
    assert "all servers run their new template" in answer.text
