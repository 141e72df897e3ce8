"""While clients write, users come from Secrets, get other passwords and go again. No SQL node is restarted for it, no connection but those
of who goes is cut, and no acknowledged row is lost."""

from __future__ import annotations

import json

import pytest
from conftest import Stack, say
from driver_steps import contents, drivers_lost_nothing, empty_checker_tables
from sql_steps import connection_of, each_copy_has_every_row, processes, settled_on
from under_load import during

from herdkeeper_e2e.checker.jdbc_pod import JdbcPod
from herdkeeper_e2e.checker.workload_plan import Share
from herdkeeper_e2e.conditions import condition
from herdkeeper_e2e.kubectl import KubectlError, Object
from herdkeeper_e2e.steered_process import ProgramEndedError
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

TAKEN_UP = Limit(300, 2)
"""The operator looks at Secrets with its resync, the kubelet brings a changed one within about a minute and a half, the node looks each ten
seconds."""
LOGIN, USER = "app-login", "app"
CONNECTION = "app-connection"
TABLE = "users_change"
DRIVERS = Share(first_client=300, adders=1, register=0, readers=0)
"""HerdDB's driver, logged in as the declared user."""
HISTORY = "/tmp/history-of-users.jsonl"
NEVER = 1_000_000_000
"""More rows than can be written while one waits."""


def database(stack: Stack) -> Object:
    return stack.sql.get("herddbcluster", "db")


def put_login(stack: Stack, password: str) -> None:
    """The Secret of the declared user, as a person applies it."""
    login = {"username": USER, "password": password}
    stack.kubectl.apply(
        {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/basic-auth", "metadata": {"name": LOGIN}, "stringData": login}
    )


def revision(stack: Stack) -> str:
    """Which users file is in force."""
    return str(database(stack)["status"]["usersRevision"])


def taken_up(stack: Stack, what: str, before: str, users: list[str]) -> None:
    """Other users than before are in force on every node."""

    def ask() -> bool | Pending:
        found = database(stack)
        told = condition(found, "UsersInForce")
        if told is None or told["status"] != "True":
            return Pending(str(told and told["message"]))
        if found["status"].get("usersRevision") == before:
            return Pending("the users file is still the one from before")
        return True if found["status"]["users"] == users else Pending(f"{found['status']['users']} may log in")

    wait_for(what, ask, TAKEN_UP, say)


def answered_as(stack: Stack, username: str, password: str) -> bool:
    """Whether the leader lets somebody in, over a connection of its own."""
    try:
        stack.tools.as_user(username, password).run("query", f"SELECT COUNT(*) AS n FROM {TABLE}")
    except KubectlError as error:
        if "refused the user" not in error.said:
            raise
        return False
    return True


def drivers_of_the_user(stack: Stack, password: str) -> JdbcPod:
    """HerdDB's driver in a pod, and empty tables for it; its Secret is the Tablespace's, with the declared user's login."""
    empty_checker_tables(stack)
    values = {**connection_of(stack), "user": USER, "password": password}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": CONNECTION}, "stringData": values}
    stack.kubectl.apply(secret)
    return JdbcPod(stack.kubectl, "jdbc-users", CONNECTION, stack.tools.database.identity).start()


def test_users_come_are_changed_and_go_without_a_restart_and_without_losing_a_row(stack: Stack) -> None:
    settled_on(stack, sorted(processes(stack)))
    wait_for("the users that there are", lambda: "usersRevision" in database(stack)["status"] or Pending("not told yet"), TAKEN_UP, say)
    administrator = connection_of(stack)
    name, old_password = str(administrator["user"]), str(administrator["password"])
    before, known = processes(stack), revision(stack)
    writer = WriterProcess(stack.tools, TABLE).acknowledges()

    writer.order("mark a user is declared")
    put_login(stack, "first")
    stack.kubectl.want("herddbcluster", "db", users=[{"secretName": LOGIN}])
    taken_up(stack, "a new user", known, [name, USER])
    assert answered_as(stack, USER, "first")
    assert not answered_as(stack, USER, "another")
    jdbc = drivers_of_the_user(stack, "first")
    drivers = jdbc.work(DRIVERS, HISTORY)
    drivers.acknowledges()

    writer.order("mark the user gets another password")
    known = revision(stack)
    put_login(stack, "second")
    taken_up(stack, "the user's other password", known, [name, USER])
    assert answered_as(stack, USER, "second")
    assert not answered_as(stack, USER, "first")
    drivers.acknowledges()  # over the connection that it has

    for password, old in (("rotated-by-a-scenario", old_password), (old_password, "rotated-by-a-scenario")):
        with during(f"the administrator gets the password {'back' if password == old_password else 'of another'}", writer):
            known = revision(stack)
            stack.kubectl.change_secret(stack.tools.database.credentials_secret, {"password": password})
            taken_up(stack, "the administrator's other password", known, [name, USER])
            assert answered_as(stack, name, password)
            assert not answered_as(stack, name, old)
        drivers.acknowledges()

    drivers.stop()
    own = WriterProcess(stack.tools.as_user(USER, "second"), "by_the_user").acknowledges()
    with during("the user goes", writer):
        known = revision(stack)
        stack.kubectl.want("herddbcluster", "db", users=None)
        with pytest.raises(ProgramEndedError):  # its connection was closed, and another one refused
            own.acknowledges(NEVER, TAKEN_UP)
        taken_up(stack, "the user's end", known, [name])
        assert not answered_as(stack, USER, "second")
    assert processes(stack) == before, "no node is restarted for any of it"

    kept = json.loads(stack.tools.run("reader", "--table", "by_the_user", "--history", "/tmp/history-of-by_the_user"))
    assert kept["violation"] is None
    found = contents(stack)
    each_copy_has_every_row(stack, writer)
    drivers_lost_nothing(stack, jdbc, [HISTORY], [found])
    stack.kubectl.run("delete", "secret", LOGIN, CONNECTION)
