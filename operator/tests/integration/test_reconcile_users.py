"""Users come from Secrets on the real API server: what is declared reaches the file that the nodes read, and is told once they have it."""

from __future__ import annotations

import base64

import pytest
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import DynamicApiError
from sql_database import HERDDB, NODES, serving_database
from stage import Json, Stage, nothing_written

from herdkeeper.codecs.herddb.users import decode_users, revision_of
from herdkeeper.protocol.self_report import ReportedUsers, SelfReport

CREDENTIALS = "db-herddb-credentials"


@pytest.fixture
def stage(stage: Stage) -> Stage:
    return serving_database(stage)


def put_login(stage: Stage, secret: str, **values: str) -> None:
    """A person's Secret, or another value in it."""
    if stage.live("Secret", secret) is None:
        body = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/basic-auth", "metadata": {"name": secret}}
        stage.of("Secret").create(body={**body, "stringData": values}, namespace=stage.namespace)
    else:
        stage.patch("Secret", secret, {"stringData": values})


def declare_users(stage: Stage, *secrets: str) -> None:
    stage.patch(HERDDB, "db", {"spec": {"users": [{"secretName": secret} for secret in secrets]}})


def users_file(stage: Stage, secret: str = CREDENTIALS) -> str:
    return base64.b64decode(stage.found("Secret", secret)["data"]["users"]).decode()


def let_in(stage: Stage) -> dict[str, str]:
    """Whom the users file lets in, with their passwords."""
    return {user.username: user.password for user in decode_users(users_file(stage))}


def nodes_have(stage: Stage, revision: str | None) -> None:
    """Both nodes tell on their streams which users file is in force."""
    for node in NODES:
        stage.liveness.heard(stage.found("Pod", node)["metadata"]["uid"], SelfReport(users=ReportedUsers(revision)))


def taken_up(stage: Stage) -> None:
    """The kubelet has brought the file, and both nodes have taken it up."""
    nodes_have(stage, revision_of(users_file(stage)))
    stage.settle(HERDDB, "db")


def in_force(stage: Stage) -> Json:
    (entry,) = [entry for entry in stage.found(HERDDB, "db")["status"]["conditions"] if entry["type"] == "UsersInForce"]
    return dict(entry)


def marks(stage: Stage) -> list[str | None]:
    """Which users file the kubelet was asked to bring to each node's pod."""
    return [(stage.found("Pod", node)["metadata"].get("annotations") or {}).get("herdkeeper.io/users") for node in NODES]


def made_from(stage: Stage) -> list[str]:
    """The versions of what a node is made from."""
    return [stage.found(kind, "db-herddb")["metadata"]["resourceVersion"] for kind in ("ConfigMap", "StatefulSet")]


def test_a_user_comes_is_changed_and_goes_and_no_node_is_touched(stage: Stage, charted: DynamicClient) -> None:
    stage.operator = charted
    taken_up(stage)
    administrator, before = let_in(stage), made_from(stage)
    assert stage.found(HERDDB, "db")["status"]["users"] == ["herdkeeper"]
    put_login(stage, "app-login", username="app", password="first")
    declare_users(stage, "app-login")
    stage.settle(HERDDB, "db")
    assert let_in(stage) == {**administrator, "app": "first"}
    assert (in_force(stage)["status"], in_force(stage)["reason"]) == ("False", "UsersChanging")
    assert stage.found(HERDDB, "db")["status"]["users"] == ["herdkeeper"], "no node has told yet that it lets the other one in"
    taken_up(stage)
    assert in_force(stage)["status"] == "True"
    assert stage.found(HERDDB, "db")["status"]["users"] == ["herdkeeper", "app"]

    known = users_file(stage)
    assert marks(stage) == [revision_of(known)] * 2, "the kubelet was asked to bring it"
    put_login(stage, "app-login", password="second")
    stage.settle(HERDDB, "db")
    assert let_in(stage)["app"] == "second"
    assert revision_of(users_file(stage)) != revision_of(known)
    assert in_force(stage)["reason"] == "UsersChanging"
    taken_up(stage)
    assert in_force(stage)["status"] == "True"

    declare_users(stage)
    stage.settle(HERDDB, "db")
    assert let_in(stage) == administrator
    taken_up(stage)
    assert stage.found(HERDDB, "db")["status"]["users"] == ["herdkeeper"]
    assert made_from(stage) == before
    with nothing_written(stage):
        stage.reconcile(HERDDB, "db")


def test_a_login_that_somebody_replaced_as_a_whole_gets_back_what_nodes_need(stage: Stage) -> None:
    """`kubectl replace` leaves neither labels nor the operator's entries: a node would take no order and, once restarted, no other user."""
    taken_up(stage)
    put_login(stage, "app-login", username="app", password="first")
    declare_users(stage, "app-login")
    stage.settle(HERDDB, "db")
    body = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": CREDENTIALS}}
    login = {"username": "herdkeeper", "password": "another"}
    stage.of("Secret").replace(body={**body, "stringData": login}, name=CREDENTIALS, namespace=stage.namespace)
    stage.settle(HERDDB, "db")
    assert stage.found("Secret", CREDENTIALS)["data"].keys() == {"username", "password", "users", "token"}
    assert let_in(stage) == {"herdkeeper": "another", "app": "first"}
    taken_up(stage)
    assert in_force(stage)["status"] == "True"


def test_another_password_of_the_administrator_restarts_nobody_and_an_operator_that_has_just_started_doubts_nothing(stage: Stage) -> None:
    taken_up(stage)
    before, old = made_from(stage), let_in(stage)
    put_login(stage, CREDENTIALS, password="another")
    stage.settle(HERDDB, "db")
    assert let_in(stage) == {**old, "herdkeeper": "another"}
    assert made_from(stage) == before
    assert all(stage.live("Pod", node) for node in NODES)
    taken_up(stage)
    assert in_force(stage)["status"] == "True"
    for node in NODES:
        stage.liveness.forget(stage.found("Pod", node)["metadata"]["uid"])
    with nothing_written(stage):
        stage.reconcile(HERDDB, "db")
    assert in_force(stage)["status"] == "True"


def test_a_secret_that_is_missing_or_wrong_is_told_and_takes_nobodys_login_away(stage: Stage) -> None:
    put_login(stage, "app-login", username="app", password="first")
    declare_users(stage, "app-login")
    stage.settle(HERDDB, "db")
    taken_up(stage)
    before = let_in(stage)

    declare_users(stage, "app-login", "report-login")
    stage.settle(HERDDB, "db")
    assert in_force(stage)["reason"] == "WaitingForSecret"
    assert "spec.users[1].secretName is report-login: the Secret does not exist; create it with username" in in_force(stage)["message"]
    told = stage.events("db")[-1]
    assert (told["type"], told["reason"]) == ("Warning", "WaitingForSecret")
    put_login(stage, "report-login", username="herdkeeper", password="b")
    stage.settle(HERDDB, "db")
    assert in_force(stage)["reason"] == "InvalidSecret"
    assert "its username herdkeeper belongs to the administrator; set another username" in in_force(stage)["message"]
    put_login(stage, "report-login", username="report", password="a,b")
    stage.settle(HERDDB, "db")
    assert "the Secret report-login has a password that HerdDB's users file can't hold" in in_force(stage)["message"]
    stage.delete("Secret", "app-login")
    stage.settle(HERDDB, "db")
    assert "spec.users[0].secretName is app-login: the Secret does not exist" in in_force(stage)["message"]
    assert "(app stays as it was)" in in_force(stage)["message"]
    assert let_in(stage) == before
    assert stage.condition(HERDDB, "db")[0] == "True", "it serves as it did"

    put_login(stage, "report-login", password="b")
    put_login(stage, "app-login", username="app", password="second")
    stage.settle(HERDDB, "db")
    taken_up(stage)
    assert let_in(stage) == {**before, "app": "second", "report": "b"}
    assert in_force(stage)["status"] == "True"
    assert [event["reason"] for event in stage.events("db")][-1] == "UsersInForce"


def test_a_node_of_an_older_program_is_named_with_what_to_do(stage: Stage) -> None:
    for node in NODES:
        stage.liveness.heard(stage.found("Pod", node)["metadata"]["uid"], SelfReport())
    stage.reconcile(HERDDB, "db")
    assert in_force(stage)["reason"] == "ImageTooOld"
    assert "db-herddb-0 reads its users only at start: set spec.image" in in_force(stage)["message"]


def test_the_api_server_refuses_a_secret_that_is_named_twice_and_more_users_than_can_be(stage: Stage) -> None:
    with pytest.raises(DynamicApiError, match=r"spec\.users names the Secret app-login more than once: remove one of its entries"):
        declare_users(stage, "app-login", "report-login", "app-login")
    with pytest.raises(DynamicApiError, match="must have at most 32 items"):
        declare_users(stage, *(f"login-{number}" for number in range(33)))


def test_a_named_administrator_and_other_users_share_the_file_that_is_made_of_their_secrets(stage: Stage) -> None:
    for secret, username in (("mine", "admin"), ("app-login", "app")):
        put_login(stage, secret, username=username, password="first")
    spec = {"bookKeeperRef": {"name": "bk"}, "credentialsSecretRef": {"name": "mine"}, "users": [{"secretName": "app-login"}]}
    stage.declare(HERDDB, "named", spec)
    stage.settle(HERDDB, "named")
    made = decode_users(users_file(stage, "named-herddb-users"))
    assert [(user.username, user.password, user.secret) for user in made] == [("admin", "first", None), ("app", "first", "app-login")]
