"""The administrator's password is changed in its Secret under a writer that, like a client which reads its Secret anew, tries the new one
where the old one is refused: it gets on all the while and loses nothing. In the end every SQL node takes the new one only, and the
connection Secret has it."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace

import pytest
from conftest import Stack, say
from sql_steps import CHANGE, connection_of, each_copy_has_every_row, settled_on
from under_load import during

from herdkeeper_e2e.kubectl import KubectlError
from herdkeeper_e2e.tools_pod import ToolsPod
from herdkeeper_e2e.waiting import Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

TABLE = "another_password"
COUNT = f"SELECT COUNT(*) AS n FROM {TABLE}"
OLD, NEW = (True, False), (False, True)
"""What a node takes: the first password, the next one."""


def taken(tools: ToolsPod, nodes: list[str]) -> dict[str, tuple[bool, bool]]:
    """Of each node which of the two passwords it takes."""
    found = (json.loads(line) for line in tools.run("taken_passwords", *nodes).splitlines())
    return {str(each["node"]): (bool(each["first"]), bool(each["next"])) for each in found}


def all_take_the_new_one(tools: ToolsPod, nodes: list[str]) -> None:
    """And none the old one. One that is being started anew does not answer."""

    def ask() -> bool | Pending:
        try:
            found = taken(tools, nodes)
        except KubectlError as error:
            return Pending(f"a node does not answer: {error.said.strip()[-100:]}")
        return True if set(found.values()) == {NEW} else Pending(f"taken (old, new): {found}")

    wait_for("the new password everywhere", ask, replace(CHANGE, interval=3), say)


def started_anew(tools: ToolsPod) -> None:
    """With what the Secret has now: its environment has what it had then."""
    tools.kubectl.run("delete", "pod", tools.name)
    tools.start()


def test_another_password_takes_hold_under_a_writer_that_loses_nothing(stack: Stack) -> None:
    nodes = sorted(stack.sql.replicas())
    settled_on(stack, nodes)
    before = connection_of(stack)["password"]
    password = secrets.token_urlsafe(24)
    clients = ToolsPod(stack.kubectl, "both-passwords", stack.tools.database, next_password=password).start()
    writer = WriterProcess(clients, TABLE).acknowledges()
    assert taken(clients, nodes) == dict.fromkeys(nodes, OLD)

    with during("every node takes the new password, and not the old one", writer):
        stack.kubectl.change_secret(stack.tools.database.credentials_secret, {"password": password})
        all_take_the_new_one(clients, nodes)

    def told() -> bool | Pending:
        found = connection_of(stack)["password"]
        return True if found == password else Pending(f"it has {'the old' if found == before else 'another'} password")

    wait_for("the connection Secret", told, CHANGE, say)
    settled_on(stack, nodes)
    with pytest.raises(KubectlError, match="refused the user"):
        stack.tools.run("query", COUNT)
    started_anew(stack.tools)
    assert stack.tools.query(COUNT)[0]["n"] > 0
    writer.acknowledges()
    each_copy_has_every_row(stack, writer)
    stack.kubectl.run("delete", "pod", clients.name)
