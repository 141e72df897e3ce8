"""`kubectl herdkeeper plan`: a change is shown and taken back, whatever happens."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from played_cluster import PlayedCluster, called, condition, resource

from herdkeeper.plugin.cluster import ClusterError, ConflictError, ForbiddenError, NoAnswerError
from herdkeeper.plugin.command import FINE, WRONG, BadInputError
from herdkeeper.plugin.merge_patch import asked_for, back_to, merged

VALUES = st.recursive(
    st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
    lambda below: st.dictionaries(st.sampled_from("abc"), below, max_size=3),
)
SPECS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)


@given(SPECS, SPECS)
def test_what_undoes_a_change_gives_the_earlier_spec(earlier: dict, present: dict) -> None:
    assert merged(present, back_to(earlier, present, present)) == earlier


@given(SPECS, SPECS, SPECS)
def test_a_change_and_what_undoes_it_leave_the_spec_as_it_was(stored: dict, declared: dict, before: dict) -> None:
    changed = merged(stored, asked_for(declared, before))
    assert merged(changed, back_to(stored, changed, changed)) == stored


@given(SPECS, SPECS, st.dictionaries(st.sampled_from("efg"), VALUES, max_size=3))
def test_what_another_user_changes_meanwhile_stays(stored: dict, declared: dict, theirs: dict) -> None:
    changed = merged(stored, declared)
    present = {**changed, **theirs}
    assert merged(present, back_to(stored, changed, present)) == {**stored, **theirs}


@pytest.mark.parametrize(
    ("earlier", "changed", "present", "left"),
    [
        ({"a": 1}, {"a": 2}, {"a": 3}, {"a": 3}),
        ({"a": 1}, {}, {"a": 3}, {"a": 3}),
        ({}, {"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, {"a": {"c": 2}}),
        ({"a": {"b": 1}}, {"a": {"b": 2, "d": 3}}, {"a": {"b": 2, "d": 3, "c": 4}}, {"a": {"b": 1, "c": 4}}),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, {}, {}),
    ],
)
def test_a_field_that_another_user_sets_keeps_that_value_and_others_go_back(
    earlier: dict, changed: dict, present: dict, left: dict
) -> None:
    assert merged(present, back_to(earlier, changed, present)) == left


def test_a_field_that_was_applied_before_and_is_not_in_the_file_any_more_goes_and_others_stay() -> None:
    stored = {"bookies": 4, "image": "old", "journal": {"size": "5Gi", "class": "fast"}, "byAnother": 1}
    patch = asked_for(
        {"bookies": 3, "journal": {"size": "5Gi"}}, {"bookies": 4, "image": "old", "journal": {"size": "5Gi", "class": "fast"}}
    )
    assert merged(stored, patch) == {"bookies": 3, "journal": {"size": "5Gi"}, "byAnother": 1}


def file(tmp_path: Path, **spec: object) -> str:
    path = tmp_path / "change.yaml"
    path.write_text(
        json.dumps({"apiVersion": "herdkeeper.io/v1alpha1", "kind": "BookKeeperCluster", "metadata": {"name": "bk"}, "spec": spec})
    )
    return str(path)


def bookkeeper() -> PlayedCluster:
    item = resource("BookKeeperCluster", "bk", {"bookies": 4, "drain": [3]})
    item["metadata"]["resourceVersion"] = "77"
    return PlayedCluster([item])


def planning(cluster: PlayedCluster, **status: object):
    """The operator tells of the plan the first time that the command waits."""

    def pause(_: float) -> None:
        assert cluster.documents[0]["metadata"]["annotations"] == {"herdkeeper.io/plan": "true"}
        cluster.documents[0]["status"].update(status)

    return pause


def test_the_plan_of_a_change_is_shown_and_all_is_as_before(tmp_path: Path) -> None:
    cluster = bookkeeper()
    plan = {"steps": ["Draining bk-bookie-3: 12 ledgers, 3 GiB"], "blockers": ["TooFewBookies: raise spec.bookies"]}
    answer, _ = called(cluster, "plan", "-f", file(tmp_path, bookies=3), pause=planning(cluster, plan=plan))
    assert answer.text.splitlines() == [
        "BookKeeperCluster/bk",
        "  1. Draining bk-bookie-3: 12 ledgers, 3 GiB",
        "  waits for: TooFewBookies: raise spec.bookies",
    ]
    assert answer.exit_code == FINE
    assert cluster.documents[0]["spec"] == {"bookies": 4, "drain": [3]}
    assert cluster.documents[0]["metadata"]["annotations"] == {}


def test_a_resource_whose_annotation_is_false_shows_no_plan_yet(tmp_path: Path) -> None:
    cluster = bookkeeper()
    cluster.documents[0]["metadata"]["annotations"] = {"herdkeeper.io/plan": "false"}
    answer, _ = called(cluster, "plan", "-f", file(tmp_path, bookies=3), pause=planning(cluster, plan={"steps": []}))
    assert answer.exit_code == FINE
    assert cluster.documents[0]["spec"] == {"bookies": 4, "drain": [3]}


def test_change_and_annotation_come_in_one_write_and_go_in_one(tmp_path: Path) -> None:
    """Whenever the command is killed, the operator sees no change without the annotation."""
    cluster = bookkeeper()
    called(cluster, "plan", "-f", file(tmp_path, bookies=3), pause=planning(cluster, plan={"steps": []}))
    checked, way_back, shown, undone = cluster.writes
    assert [checked[-1], way_back[-1], shown[-1], undone[-1]] == [True, True, False, False]
    shows = {"annotations": {"herdkeeper.io/plan": "true"}, "resourceVersion": "77"}
    assert checked[3] == shown[3] == {"metadata": shows, "spec": {"bookies": 3}}
    undoes = {"annotations": {"herdkeeper.io/plan": None}, "resourceVersion": "78"}
    assert undone[3] == {"metadata": undoes, "spec": {"bookies": 4}}


class BusyCluster(PlayedCluster):
    """Somebody else cancels the drain between `reads` and what is written next."""

    reads = 0

    def get(self, kind, name):
        found = super().get(kind, name)
        self.reads -= 1
        if self.reads == 0:
            self.documents[0]["spec"]["drain"] = []
            self.documents[0]["metadata"]["resourceVersion"] = "100"
        return found


@pytest.mark.parametrize("reads", [3, 4, 5], ids=["while it waits", "once it is shown", "at the moment of the revert"])
def test_what_another_user_changes_while_the_plan_is_shown_is_not_undone(tmp_path: Path, reads: int) -> None:
    cluster = BusyCluster(bookkeeper().documents)
    cluster.reads = reads
    called(cluster, "plan", "-f", file(tmp_path, bookies=3), pause=planning(cluster, plan={"steps": []}))
    assert cluster.reads < 0
    assert cluster.documents[0]["spec"] == {"bookies": 4, "drain": []}
    assert cluster.documents[0]["metadata"]["annotations"] == {}


def test_a_change_by_another_user_before_the_first_write_is_told_and_stays(tmp_path: Path) -> None:
    cluster = BusyCluster(bookkeeper().documents)
    cluster.reads = 2
    with pytest.raises(ClusterError, match="BookKeeperCluster/bk was changed by somebody else at this moment: nothing was written"):
        called(cluster, "plan", "-f", file(tmp_path, bookies=3))
    assert cluster.documents[0]["spec"] == {"bookies": 4, "drain": []}


def test_of_a_resource_that_is_made_anew_nothing_is_taken_back(tmp_path: Path) -> None:
    cluster = bookkeeper()

    def pause(_: float) -> None:
        cluster.documents[0] = resource("BookKeeperCluster", "bk", {"bookies": 3})
        cluster.documents[0]["metadata"]["uid"] = "another"

    answer, _ = called(cluster, "plan", "-f", file(tmp_path, bookies=3), pause=pause)
    assert (answer.exit_code, cluster.documents[0]["spec"]) == (WRONG, {"bookies": 3})


class StubbornCluster(PlayedCluster):
    """Somebody writes each time before the plan is taken back."""

    def patch(self, kind, name, body, *, dry_run):
        if body["metadata"]["annotations"]["herdkeeper.io/plan"] is None:
            raise ConflictError("the object has been modified")
        return super().patch(kind, name, body, dry_run=dry_run)


def test_a_change_that_could_not_be_taken_back_is_told_with_what_to_do(tmp_path: Path) -> None:
    cluster = StubbornCluster(bookkeeper().documents)
    with pytest.raises(ClusterError, match=r"BookKeeperCluster/bk still has the change, .* revert the change, then `resume"):
        called(cluster, "plan", "-f", file(tmp_path, bookies=3), pause=planning(cluster, plan={"steps": []}))


@pytest.fixture(autouse=True)
def signals_as_in_a_terminal() -> Iterator[None]:
    """Whoever runs the tests in the background has them ignore some."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class InterruptedError(KeyboardInterrupt):
    """Ctrl-C."""


def test_it_is_taken_back_when_the_command_is_interrupted(tmp_path: Path) -> None:
    cluster = bookkeeper()

    def pause(_: float) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        called(cluster, "plan", "-f", file(tmp_path, bookies=3), pause=pause)
    assert cluster.documents[0]["spec"]["bookies"] == 4
    assert cluster.documents[0]["metadata"]["annotations"] == {}


@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGHUP], ids=["ended", "its terminal is closed"])
def test_it_is_taken_back_when_the_process_is_to_end(tmp_path: Path, ended_by: signal.Signals) -> None:
    cluster = bookkeeper()
    with pytest.raises(KeyboardInterrupt):
        called(cluster, "plan", "-f", file(tmp_path, bookies=3), pause=lambda _: signal.raise_signal(ended_by))
    assert cluster.documents[0]["spec"]["bookies"] == 4
    assert cluster.documents[0]["metadata"]["annotations"] == {}
    assert signal.getsignal(ended_by) is signal.SIG_DFL


class InterruptedCluster(PlayedCluster):
    """The user has no patience: before the change is reverted comes another signal."""

    signal = signal.SIGINT

    def patch(self, kind, name, body, *, dry_run):
        if body["metadata"]["annotations"]["herdkeeper.io/plan"] is None:
            signal.raise_signal(self.signal)
        return super().patch(kind, name, body, dry_run=dry_run)


@pytest.mark.parametrize("again", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "ended"])
def test_it_is_taken_back_when_the_command_is_interrupted_twice(
    tmp_path: Path, again: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = InterruptedCluster(bookkeeper().documents)
    cluster.signal = again
    with pytest.raises(KeyboardInterrupt):
        called(cluster, "plan", "-f", file(tmp_path, bookies=3), pause=lambda _: signal.raise_signal(signal.SIGINT))
    assert cluster.documents[0]["spec"]["bookies"] == 4
    assert cluster.documents[0]["metadata"]["annotations"] == {}
    assert capsys.readouterr().err == "the change is being reverted; wait for it\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class AbsentCluster(PlayedCluster):
    """Once the change is written, the API server does not answer so many times."""

    silences = 0

    def _answers(self) -> None:
        if self.silences and (self.documents[0]["metadata"].get("annotations") or {}).get("herdkeeper.io/plan"):
            self.silences -= 1
            raise NoAnswerError("the API server does not answer")

    def get(self, kind, name):
        self._answers()
        return super().get(kind, name)

    def patch(self, kind, name, body, *, dry_run):
        self._answers()
        return super().patch(kind, name, body, dry_run=dry_run)


@pytest.mark.parametrize("silences", [2, 5, 40])
def test_it_is_taken_back_when_the_api_server_was_away(tmp_path: Path, silences: int) -> None:
    """Until then no lost leader of a HerdDBCluster would be replaced."""
    cluster = AbsentCluster(bookkeeper().documents)
    cluster.silences = silences
    called(cluster, "plan", "-f", file(tmp_path, bookies=3), "--timeout", "3")
    assert cluster.documents[0]["spec"] == {"bookies": 4, "drain": [3]}
    assert cluster.documents[0]["metadata"]["annotations"] == {}


def test_one_that_stays_away_is_not_asked_for_ever_and_the_way_back_is_told(tmp_path: Path) -> None:
    cluster = AbsentCluster(bookkeeper().documents)
    cluster.silences = 1000
    with pytest.raises(ClusterError, match=r"BookKeeperCluster/bk still has the change, .* revert the change, then `resume"):
        called(cluster, "plan", "-f", file(tmp_path, bookies=3), "--timeout", "3")


@pytest.mark.parametrize("seconds", ["3"])
def test_an_operator_that_shows_no_plan_is_not_waited_for_for_ever(tmp_path: Path, seconds: str) -> None:
    cluster = bookkeeper()
    answer, _ = called(cluster, "plan", "-f", file(tmp_path, bookies=3), "--timeout", seconds)
    assert answer.exit_code == WRONG
    assert "within 3 s" in answer.text
    assert cluster.documents[0]["spec"]["bookies"] == 4


def test_what_the_operator_refuses_is_told(tmp_path: Path) -> None:
    cluster = bookkeeper()
    refused = [condition("Ready", "False", "InvalidSpec", "spec.bookies is 3: raise it")]
    answer, _ = called(cluster, "plan", "-f", file(tmp_path, bookies=3), pause=planning(cluster, conditions=refused))
    assert answer.exit_code == WRONG
    assert "waits for: InvalidSpec: spec.bookies is 3: raise it" in answer.text


def test_a_plan_that_somebody_looks_at_is_left_alone(tmp_path: Path) -> None:
    cluster = bookkeeper()
    cluster.documents[0]["metadata"]["annotations"] = {"herdkeeper.io/plan": "true"}
    with pytest.raises(BadInputError, match="BookKeeperCluster/bk shows a plan already"):
        called(cluster, "plan", "-f", file(tmp_path, bookies=3))
    assert cluster.documents[0]["metadata"]["annotations"] == {"herdkeeper.io/plan": "true"}


def test_of_a_new_resource_only_the_check_is_done(tmp_path: Path) -> None:
    cluster = PlayedCluster()
    answer, _ = called(cluster, "plan", "-f", file(tmp_path, bookies=3))
    assert [(verb, dry_run) for verb, *_, dry_run in cluster.writes] == [("create", True)]
    assert "it is new: everything would be created" in answer.text


def test_a_resource_of_another_namespace_is_not_taken_for_the_one_of_its_name_here(tmp_path: Path) -> None:
    cluster, path = bookkeeper(), Path(file(tmp_path, bookies=3))
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "metadata": {"name": "bk", "namespace": "other"}}))
    with pytest.raises(BadInputError, match=r"is in the namespace other, but this shows plans of demo; add --namespace other"):
        called(cluster, "plan", "-f", str(path))
    assert cluster.writes == []


def test_a_list_as_kubectl_get_writes_it_is_taken_apart(tmp_path: Path) -> None:
    cluster, path = bookkeeper(), Path(file(tmp_path, bookies=3))
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [json.loads(path.read_text())]}))
    answer, _ = called(cluster, "plan", "-f", str(path), pause=planning(cluster, plan={"steps": ["drain"]}))
    assert answer.text == "BookKeeperCluster/bk\n  1. drain"


def test_a_time_without_quotes_is_a_text_as_with_kubectl(tmp_path: Path) -> None:
    path = tmp_path / "file"
    spec = "{window: {from: 22:00, to: 5:30:15.5}, at: 2026-11-21T14:30:00Z, day: 2026-11-21, number: 7, part: 0.5, none: null}"
    path.write_text(f"apiVersion: herdkeeper.io/v1alpha1\nkind: ReplicationAudit\nmetadata: {{name: a}}\nspec: {spec}\n")
    cluster = PlayedCluster()
    called(cluster, "plan", "-f", str(path))
    ((_, _, _, document, _),) = cluster.writes
    assert document["spec"] == {
        "window": {"from": "22:00", "to": "5:30:15.5"},
        "at": "2026-11-21T14:30:00Z",
        "day": "2026-11-21",
        "number": 7,
        "part": 0.5,
        "none": None,
    }


def test_a_kind_of_that_name_in_another_group_is_not_ours(tmp_path: Path) -> None:
    """Such as the ZookeeperCluster of other operators."""
    path = tmp_path / "file"
    path.write_text("apiVersion: zookeeper.example.com/v1\nkind: ZookeeperCluster\nmetadata: {name: zk}\nspec: {replicas: 5}\n")
    cluster = PlayedCluster([resource("ZooKeeperCluster", "zk")])
    with pytest.raises(BadInputError, match=r"it has no resource of herdkeeper\.io"):
        called(cluster, "plan", "-f", str(path))
    assert cluster.writes == []


class RefusingCluster(PlayedCluster):
    """The API server refuses what is checked."""

    def patch(self, kind, name, body, *, dry_run):
        raise ClusterError("spec.bookies is -1")


def test_what_the_api_server_refuses_is_never_written(tmp_path: Path) -> None:
    cluster = RefusingCluster(bookkeeper().documents)
    with pytest.raises(ClusterError, match="is -1"):
        called(cluster, "plan", "-f", file(tmp_path, bookies=-1))
    assert cluster.documents[0]["spec"]["bookies"] == 4


@pytest.mark.parametrize(
    ("words", "bookies", "shown"),
    [
        ("ValidatingAdmissionPolicy 'p' denied request: it names", 3, False),
        ('admission webhook "w" denied the request: it names', 3, False),
        ("cannot create", 3, True),
        ("ValidatingAdmissionPolicy 'p' denied request: it names", 4, True),
    ],
    ids=["policy", "webhook", "no right to create", "nothing to revert"],
)
def test_a_change_that_a_policy_lets_its_author_make_and_not_revert_is_not_shown(
    tmp_path: Path, words: str, bookies: int, shown: bool
) -> None:
    """The earlier image, for instance, was named by somebody with more rights."""
    cluster = bookkeeper()

    def refuses(kind, document, *, dry_run):
        assert (document["metadata"]["name"], document["spec"], dry_run) == ("bk", {"bookies": 4, "drain": [3]}, True)
        raise ForbiddenError(f"bookkeeperclusters.herdkeeper.io is forbidden: {words}")

    cluster.create = refuses
    with nullcontext() if shown else pytest.raises(BadInputError, match="BookKeeperCluster bk could not be reverted with your rights"):
        called(cluster, "plan", "-f", file(tmp_path, bookies=bookies), pause=planning(cluster, plan={"steps": []}))
    assert [verb for verb, *_, dry_run in cluster.writes if not dry_run] == (["patch", "patch"] if shown else [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "it can't be read (No such file or directory)"),
        ("a: [", "it is not YAML"),
        ("kind: Pod\n", "it has no resource of herdkeeper.io; name a file with one"),
        ("kind: Tablespace\n", "a Tablespace has no metadata.name; name it"),
        (
            "kind: Tablespace\napiVersion: herdkeeper.io/v2\n",
            "a Tablespace has the apiVersion herdkeeper.io/v2, which is not known here; write herdkeeper.io/v1alpha1",
        ),
        ("kind: Tablespace\nmetadata: flights\n", "metadata of a Tablespace is no mapping; give it fields"),
        ("kind: Tablespace\nmetadata: {name: flights}\nspec: [a]\n", "spec of a Tablespace is no mapping; give it fields"),
    ],
)
def test_a_file_that_can_not_be_taken_is_named_with_the_reason(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "file"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadInputError) as refused:
        called(PlayedCluster(), "plan", "-f", str(path))
    assert str(refused.value).startswith(f"--filename {path}: {message}")
