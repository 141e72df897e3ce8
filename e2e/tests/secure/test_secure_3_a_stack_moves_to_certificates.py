"""A stack in plain text moves to certificates in place, under writers: its servers restart one at a time, nothing that was acknowledged is
lost, and in the end its ports refuse whoever has no certificate of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from conftest import Stack, say
from own_stack import PLAIN_TEXT
from secure_steps import only_the_stack_is_served, secure_stack
from under_load import SETTLED, all_anew, during, settled, uids, under_load

from herdkeeper.api.zookeeper_cluster import NOBODY
from herdkeeper_e2e.kubectl import Kubectl, KubectlError
from herdkeeper_e2e.tools_pod import Database
from herdkeeper_e2e.waiting import Pending, wait_for

NO_TLS = "the HerdDBCluster db (it has no spec.tls"


@pytest.fixture(scope="module")
def stack(kubectl: Kubectl) -> Iterator[Stack]:
    with secure_stack(kubectl, PLAIN_TEXT) as found:
        yield found


def needed_by(stack: Stack) -> str | None:
    """Who needs plain text, by the status; None if it does not tell."""
    told = stack.sql.get("zookeepercluster", "zk").get("status", {}).get("plaintextNeededBy")
    return None if told is None else str(told)


def wait_until_needed_by(stack: Stack, whom: str) -> None:
    """`whom` is the beginning of the only name."""

    def alone() -> bool | Pending:
        told = needed_by(stack) or ""
        return True if told.startswith(whom) and "), " not in told else Pending(told or "nothing is told")

    wait_for(f"plain text to be needed by {whom}", alone, SETTLED, say)
    say(f"needed by {needed_by(stack)}")


def test_a_stack_moves_to_certificates_in_place_under_load(stack: Stack) -> None:
    settled(stack)
    before, kubectl = uids(stack), stack.kubectl
    with under_load(stack, "written_in_plain_text") as writer:
        writer.marked("both are accepted")
        kubectl.want("zookeepercluster", "zk", security={"mode": "Permissive"})
        wait_until_needed_by(stack, NO_TLS)
        with pytest.raises(KubectlError, match=r"spec\.security\.mode can't become TLS yet.*the HerdDBCluster db"):
            kubectl.want("zookeepercluster", "zk", security={"mode": "TLS"})
        with during("SQL nodes have certificates", writer):
            kubectl.want("herddbcluster", "db", tls={"secretName": "db-herddb-identity", "plaintext": "Accepted"})
            wait_until_needed_by(stack, NOBODY)
            all_anew(stack, before)

    tools = replace(stack.tools, name="tools-with-certificate", database=Database.of(kubectl, "db", "bk", "flights")).start()
    moved = replace(stack, tools=tools)
    with under_load(moved, "written_with_certificates") as writer, during("plain text is refused", writer):
        kubectl.want("herddbcluster", "db", tls={"plaintext": "Refused"})
        kubectl.want("zookeepercluster", "zk", security={"mode": "TLS"})
        wait_for("plain text to be refused", lambda: needed_by(stack) is None or Pending(f"{needed_by(stack)}"), SETTLED, say)
        settled(moved)

    only_the_stack_is_served(moved)
    with pytest.raises(KubectlError, match="can't change"):
        kubectl.want("zookeepercluster", "zk", security={"mode": "Permissive"})
