"""Who may log in: what the Secrets say, what the users file keeps of it, and when it is in force."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from situations import live, objects, pods, with_spec, with_status
from test_plan_herddb import CLUSTER, CREDENTIALS, PODS, SETTLED
from test_plan_leaders import CALM, LOST

from herdkeeper.api.herddb_cluster import UserSecret
from herdkeeper.api.resource import SecretReference
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.codecs.herddb.users import SqlUser, decode_users, encode_users, invalid_part, invalid_part_of_administrator, revision_of
from herdkeeper.herddb.build import build_herddb_secret
from herdkeeper.herddb.leadership.plan import plan_leadership
from herdkeeper.herddb.observe.users import read_credentials, read_users
from herdkeeper.herddb.plan.cluster import plan_herddb
from herdkeeper.herddb.plan.users import refresh_users
from herdkeeper.herddb.state.cluster import UserCredentials
from herdkeeper.herddb.state.fleet import SqlFleet
from herdkeeper.herddb.state.users import users_of
from herdkeeper.herddb.status import summarize_herddb
from herdkeeper.planning.actions import AddToSecret, Apply, ForgetNode
from herdkeeper.planning.summary import Health
from herdkeeper.protocol.self_report import ReportedUsers, SelfReport
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

ADMINISTRATOR = SqlUser("herdkeeper", "secret")
APP, REPORT = SqlUser("app", "a", "one"), SqlUser("report", "b", "two")
TWO = with_spec(CLUSTER, users=(UserSecret(secret_name="one"), UserSecret(secret_name="two")))
FOUND: dict[str, UserCredentials | Problem] = {"one": UserCredentials("app", "a"), "two": UserCredentials("report", "b")}
GONE = Problem(Reason.WAITING_FOR_SECRET, "the Secret does not exist; create it with username and password")


def file_of(*users: SqlUser) -> str:
    return encode_users(users, "a-token")


@given(st.text(), st.text())
def test_what_the_file_can_hold_of_the_administrator_is_read_from_it_as_it_was_written(username: str, password: str) -> None:
    fits = invalid_part_of_administrator(username, password) is None
    assert fits or invalid_part(username, password) is not None, "no more is refused of the administrator"
    if fits:
        assert decode_users(file_of(SqlUser(username, password))) == (SqlUser(username, password),)


@dataclass
class Secrets:
    """The Secrets that there are."""

    found: dict[str, dict[str, str]]

    def secret(self, key: ObjectKey) -> dict[str, str] | None:
        return self.found.get(key.name)


@pytest.mark.parametrize(
    ("password", "refused"),
    [
        ("a\x7fb", False),
        ("a\tb", False),
        ("caf\ufffd", False),
        ("a,b", True),
        ("a\rb", True),
        ("a\nb", True),
        (" a", True),
    ],
)  # fmt: skip
def test_a_password_that_the_administrator_has_had_and_the_file_holds_is_not_refused(password: str, refused: bool) -> None:
    own = with_spec(CLUSTER, credentials_secret_ref=SecretReference(name="mine"))
    login = {"username": "admin", "password": password}
    read = read_credentials(own, ClusterReader(Secrets({"mine": login}), None, None))
    if not refused:
        assert read == UserCredentials("admin", password)
        assert "users" in build_herddb_secret(own, "db-herddb-users", (SqlUser("admin", password),), "a-token")["data"]
        return
    assert isinstance(read, Problem)
    fix = "use one line without commas and spaces around it; a username does not begin with #"
    assert (read.reason, read.why) == (
        Reason.INVALID_SPEC,
        f"the Secret mine has a password that HerdDB's users file can't hold: {fix}",
    )


@pytest.mark.parametrize("password", ["a\x7fb", "caf\ufffd", "a,b"])
def test_of_other_users_what_a_client_can_t_send_is_refused_too(password: str) -> None:
    login = {"username": "app", "password": password}
    read = read_users(with_spec(CLUSTER, users=(UserSecret(secret_name="one"),)), ClusterReader(Secrets({"one": login}), None, None))["one"]
    assert isinstance(read, Problem)
    assert read.reason is Reason.INVALID_SECRET
    assert "without commas, control characters and spaces around it" in read.why


@given(st.lists(st.tuples(st.text(), st.text(), st.none() | st.sampled_from(["one", "a-secret.of-mine"]))))
def test_what_the_file_can_hold_is_read_from_it_as_it_was_written(values: list[tuple[str, str, str | None]]) -> None:
    users = tuple(SqlUser(*value) for value in values if invalid_part(value[0], value[1]) is None)
    assert decode_users(file_of(*users)) == users


def test_herddb_finds_one_line_for_each_user_and_comments_beside() -> None:
    revision, *lines = file_of(ADMINISTRATOR, APP).splitlines()
    assert revision.startswith("# revision ")
    assert lines == ["herdkeeper,secret,admin", "# secret one", "app,a,admin"]


def test_the_revision_follows_passwords_and_tells_nothing_without_the_key() -> None:
    revisions = {
        revision_of(encode_users(users, key))
        for users, key in (((APP,), "key"), ((replace(APP, password="other"),), "key"), ((APP,), "other key"), ((APP, REPORT), "key"))
    }
    assert len(revisions) == 4
    assert None not in revisions
    assert revision_of(encode_users((APP,), "key")) == revision_of(encode_users((APP,), "key"))
    assert revision_of("herdkeeper,secret,admin\n") is None


def test_a_file_of_an_earlier_version_has_the_administrator_only() -> None:
    assert decode_users("herdkeeper,secret,admin\n") == (ADMINISTRATOR,)
    assert decode_users("half a line\n,,admin\na,b,writer\n# secret one\n\napp,a,admin\n") == (SqlUser("app", "a"),)


def test_the_administrator_comes_first_and_the_others_as_declared() -> None:
    assert users_of(TWO, CREDENTIALS, FOUND, "").users == (ADMINISTRATOR, APP, REPORT)
    assert users_of(TWO, CREDENTIALS, FOUND, "").problems == ()
    assert users_of(CLUSTER, CREDENTIALS, {}, file_of(ADMINISTRATOR, APP)).users == (ADMINISTRATOR,)


@pytest.mark.parametrize(
    ("found", "stored", "users", "reason", "why"),
    [
        (
            {"two": GONE},
            "",
            (ADMINISTRATOR, APP),
            Reason.WAITING_FOR_SECRET,
            "spec.users[1].secretName is two: the Secret does not exist; ",
        ),
        ({"two": GONE}, "kept", (ADMINISTRATOR, APP, REPORT), Reason.WAITING_FOR_SECRET, "(report stays as it was)"),
        ({"one": GONE}, "kept", (ADMINISTRATOR, APP, REPORT), Reason.WAITING_FOR_SECRET, "spec.users[0].secretName is one: "),
        (
            {"two": UserCredentials("app", "x")},
            "",
            (ADMINISTRATOR, APP),
            Reason.INVALID_SECRET,
            "spec.users[1].secretName is two: its username app belongs to the user of the Secret one; set another username",
        ),
        (
            {"one": UserCredentials("herdkeeper", "x")},
            "kept",
            (ADMINISTRATOR, APP, REPORT),
            Reason.INVALID_SECRET,
            "spec.users[0].secretName is one: its username herdkeeper belongs to the administrator; set another username (app stays",
        ),
        # the later one has the name, the earlier one is edited
        (
            {"one": UserCredentials("report", "x")},
            "kept",
            (ADMINISTRATOR, APP, REPORT),
            Reason.INVALID_SECRET,
            "its username report belongs to the user of the Secret two; set another username (app stays as it was)",
        ),
        # neither has the name yet
        (
            {"two": UserCredentials("app", "x")},
            "",
            (ADMINISTRATOR, APP),
            Reason.INVALID_SECRET,
            "belongs to the user of the Secret one; set",
        ),
    ],
)
def test_what_is_wrong_with_one_secret_is_told_and_takes_no_login_away(found, stored, users, reason, why) -> None:
    before = file_of(ADMINISTRATOR, APP, REPORT) if stored == "kept" else stored
    made = users_of(TWO, CREDENTIALS, {**FOUND, **found}, before)
    assert made.users == users
    (problem,) = made.problems
    assert problem.reason is reason
    assert why in problem.why


@pytest.mark.parametrize(
    ("found", "users"),
    [
        ({"one": UserCredentials("report", "x"), "two": GONE}, (ADMINISTRATOR, APP, REPORT)),
        ({"one": UserCredentials("report", "x"), "two": UserCredentials("herdkeeper", "y")}, (ADMINISTRATOR, APP, REPORT)),
        ({"one": UserCredentials("report", "x"), "two": UserCredentials("app", "y")}, (ADMINISTRATOR, APP, REPORT)),
    ],
    ids=["whose Secret is gone", "whose Secret wants what it can't have", "who wants the name of the other one"],
)
def test_no_secret_takes_the_name_of_another_one_that_still_has_it(found, users) -> None:
    made = users_of(TWO, CREDENTIALS, found, file_of(*users))
    assert made.users == users
    assert [problem.why.rpartition(" (")[2] for problem in made.problems] == ["app stays as it was)", "report stays as it was)"]


@pytest.mark.parametrize("secrets", [("one", "two"), ("two", "one")])
def test_a_name_is_free_as_soon_as_who_had_it_has_another(secrets) -> None:
    declared = with_spec(CLUSTER, users=tuple(UserSecret(secret_name=name) for name in secrets))
    found = {"one": UserCredentials("report", "x"), "two": UserCredentials("other", "y")}
    made = users_of(declared, CREDENTIALS, found, file_of(ADMINISTRATOR, APP, REPORT))
    assert {(user.username, user.secret) for user in made.users[1:]} == {("report", "one"), ("other", "two")}
    assert made.problems == ()
    undeclared = with_spec(CLUSTER, users=(UserSecret(secret_name="one"),))
    alone = users_of(undeclared, CREDENTIALS, found, file_of(ADMINISTRATOR, APP, REPORT))
    assert (alone.users, alone.problems) == ((ADMINISTRATOR, SqlUser("report", "x", "one")), ())


def seen_with(told: dict[str, ReportedUsers | None], *users: SqlUser) -> SqlFleet:
    """The database with a users file of these, and what its nodes tell."""
    secret = live((build_herddb_secret(CLUSTER, "db-herddb-credentials", users, "a-token"),))
    reports = {node: SelfReport(users=each) for node, each in told.items()}
    return replace(SETTLED, cluster=TWO, objects=objects(SETTLED.objects.items, secret), reports=reports, user_secrets=FOUND)


def in_force(cluster, seen: SqlFleet) -> Health:
    return summarize_herddb(replace(seen, cluster=cluster)).conditions["UsersInForce"]


NEW = ReportedUsers(revision_of(file_of(ADMINISTRATOR, APP, REPORT)))
OLD = ReportedUsers("an-older-one")


def test_users_are_in_force_once_every_node_tells_so_and_the_status_names_them_then() -> None:
    everybody = (ADMINISTRATOR, APP, REPORT)
    half = seen_with({PODS[0]: NEW, PODS[1]: OLD}, *everybody)
    known = with_status(TWO, users=("herdkeeper",), users_revision="an-older-one")
    assert in_force(known, half) == Health("False", Reason.USERS_CHANGING, "db-herddb-1 has not loaded them yet")
    assert summarize_herddb(replace(half, cluster=known)).fields["users"] == ["herdkeeper"]
    whole = seen_with(dict.fromkeys(PODS, NEW), *everybody)
    assert in_force(known, whole) == Health("True", Reason.USERS_IN_FORCE, "every SQL node accepts herdkeeper, app, report")
    fields = summarize_herddb(replace(whole, cluster=known)).fields
    assert (fields["users"], fields["usersRevision"]) == (["herdkeeper", "app", "report"], NEW.revision)


def test_a_node_that_says_nothing_is_not_taken_for_one_that_has_them_unless_it_had_them_before() -> None:
    seen = seen_with({PODS[0]: NEW}, ADMINISTRATOR, APP, REPORT)
    assert in_force(TWO, seen).message == "db-herddb-1 has not reported yet which users may log in"
    assert in_force(with_status(TWO, users_revision=NEW.revision), seen).status == "True"
    assert in_force(with_status(TWO, users_revision=NEW.revision), seen_with({PODS[0]: OLD}, ADMINISTRATOR, APP, REPORT)).status == "False"
    starting = replace(seen, objects=objects(seen.objects.items, pods(PODS[1:], conditions=[])))
    assert in_force(TWO, starting).status == "True", "it reads them before it serves"
    hanging = replace(starting, reports={**seen.reports, PODS[1]: SelfReport(users=OLD)})
    assert in_force(TWO, hanging).status == "False", "it may serve all the same"


def test_a_node_that_refuses_the_file_says_why_and_one_of_an_older_program_what_to_do() -> None:
    refusing = {PODS[0]: NEW, PODS[1]: ReportedUsers("an-older-one", "/credentials/users: user line 2")}
    told = in_force(TWO, seen_with(refusing, ADMINISTRATOR, APP, REPORT))
    assert (told.reason, told.message) == (Reason.USERS_CHANGING, "db-herddb-1 has not loaded them yet (/credentials/users: user line 2)")
    old_program = in_force(TWO, seen_with({PODS[0]: NEW, PODS[1]: None}, ADMINISTRATOR, APP, REPORT))
    assert (old_program.status, old_program.reason) == ("False", Reason.IMAGE_TOO_OLD)
    assert "set spec.image" in old_program.message


def test_a_problem_is_told_while_all_others_are_in_force_and_the_database_stays_ready() -> None:
    gone = replace(seen_with(dict.fromkeys(PODS, NEW), ADMINISTRATOR, APP, REPORT), user_secrets={**FOUND, "two": GONE})
    told = in_force(TWO, gone)
    assert (told.status, told.reason) == ("False", Reason.WAITING_FOR_SECRET)
    assert told.message.endswith("create it with username and password (report stays as it was)")
    summary = summarize_herddb(gone)
    assert summary.health.status == "True"
    assert summary.fields["users"] == ["herdkeeper", "app", "report"]


def test_the_kubelet_is_asked_once_to_bring_a_file_that_a_node_has_not() -> None:
    seen = seen_with({PODS[0]: NEW, PODS[1]: OLD}, ADMINISTRATOR, APP, REPORT)
    (mark,) = refresh_users(seen)
    assert (mark.name, mark.uid, mark.annotations) == (PODS[1], f"uid-{PODS[1]}", {"herdkeeper.io/users": NEW.revision})
    assert plan_herddb(seen).actions == (mark,)
    pod = seen.objects.get("Pod", PODS[1])
    assert pod is not None
    marked = {("Pod", PODS[1]): {**pod, "metadata": {**pod["metadata"], "annotations": dict(mark.annotations)}}}
    stopping = {("Pod", PODS[1]): {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}}
    for other in (marked, stopping):
        assert refresh_users(replace(seen, objects=objects(seen.objects.items, other))) == ()
    for told in ({}, dict.fromkeys(PODS), dict.fromkeys(PODS, NEW)):
        assert refresh_users(seen_with(told, ADMINISTRATOR, APP, REPORT)) == ()


def test_a_mark_that_is_refused_keeps_nothing_else_from_being_done() -> None:
    seen = seen_with({PODS[0]: NEW, PODS[1]: OLD}, ADMINISTRATOR, APP, REPORT)
    (mark,) = refresh_users(seen)
    without_map = {key: item for key, item in seen.objects.items.items() if key[0] != "ConfigMap"}
    changes = plan_herddb(replace(seen, objects=objects(without_map))).actions
    assert [each.manifest["kind"] for each in changes[:-1] if isinstance(each, Apply)] == ["ConfigMap"]
    assert changes[-1] == mark
    left = replace(CALM, objects=objects(CALM.objects.items, seen.objects.items), registered=(*PODS, "db-herddb-5"))
    forgets, *others = plan_herddb(replace(left, cluster=TWO, reports=seen.reports, user_secrets=FOUND)).actions
    assert isinstance(forgets, ForgetNode), "what the nodes themselves need is not put off, either"
    assert others == [mark]


@pytest.mark.parametrize(
    "held_up",
    [
        {"tls": Problem(Reason.INVALID_SECRET, "the Secret mine: tls.crt has expired")},
        {"root_parent": Unknown("ZooKeeper does not answer")},
    ],
    ids=["the certificate", "ZooKeeper"],
)
def test_a_login_is_taken_away_also_while_no_node_may_be_touched(held_up: dict[str, Any]) -> None:
    """Its password may have leaked, and drivers that verify nothing go on logging in."""
    before = seen_with({}, ADMINISTRATOR, APP, REPORT)
    changed = with_spec(CLUSTER, users=(UserSecret(secret_name="two"),), image="herdkeeper/herddb:0.3.0")
    plan = plan_herddb(replace(before, cluster=changed, **held_up))
    (action,) = plan.actions
    assert isinstance(action, AddToSecret)
    assert decode_users(base64.b64decode(action.data["users"]).decode()) == (ADMINISTRATOR, REPORT)
    assert plan.wait is not None
    late = seen_with({PODS[0]: NEW, PODS[1]: OLD}, ADMINISTRATOR, APP, REPORT)
    assert plan_herddb(replace(late, **held_up)).actions == refresh_users(late) != ()


def test_a_login_is_taken_away_also_while_a_leader_is_to_be_moved_and_that_fails() -> None:
    """A move fails for as long as ZooKeeper refuses to change the tablespace's record."""
    changed = with_spec(CLUSTER, users=(UserSecret(secret_name="two"),), image="herdkeeper/herddb:0.3.0")
    fleet = seen_with({PODS[0]: NEW, PODS[1]: OLD}, ADMINISTRATOR, APP, REPORT)
    moving = replace(fleet, cluster=changed, records=LOST.records, nodes=LOST.nodes, declared=LOST.declared, now=LOST.now)
    assert plan_leadership(moving).moves
    (action,) = plan_herddb(moving).actions
    assert isinstance(action, AddToSecret), "and neither the new image nor anything else reaches a node"
    assert decode_users(base64.b64decode(action.data["users"]).decode()) == (ADMINISTRATOR, REPORT)
    assert plan_herddb(replace(moving, cluster=fleet.cluster)).actions == refresh_users(fleet) != ()


def test_a_file_that_is_about_to_change_is_not_in_force() -> None:
    told = in_force(TWO, seen_with(dict.fromkeys(PODS, ReportedUsers(revision_of(file_of(ADMINISTRATOR)))), ADMINISTRATOR))
    assert (told.status, told.reason) == ("False", Reason.USERS_CHANGING)


def test_nothing_is_told_of_users_before_there_is_a_users_file() -> None:
    assert "UsersInForce" not in summarize_herddb(replace(SETTLED, cluster=TWO)).conditions
