"""While clients write, over the project's wire client and over HerdDB's own driver, the SQL port of a stack in plain text is encrypted in
two steps, and a renewed certificate is served; no acknowledged row is lost. A full check tells of every follower, on request and by
schedule, and how long writes stood still for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Stack, say
from driver_steps import contents, drivers_lost_nothing, empty_checker_tables
from full_check_steps import CHECKED, check_on_request, every_follower_is_judged, full_check, next_check
from own_stack import plain_stack
from sql_steps import connection_of, each_copy_has_every_row, processes, settled_on
from under_load import during, lost_nothing, others

from herdkeeper_e2e.certificates import Authority, Issued
from herdkeeper_e2e.checker.jdbc_pod import JdbcPod
from herdkeeper_e2e.checker.workload_plan import Share
from herdkeeper_e2e.kubectl import Kubectl, KubectlError, Object
from herdkeeper_e2e.sql_stack import TABLESPACE
from herdkeeper_e2e.steered_process import SteeredProcess
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

SECRET = "db-tls"
BEFORE = Share(first_client=100, adders=1, register=0, readers=0)
AFTER = Share(first_client=200, adders=1, register=1, readers=0)
"""HerdDB's driver, connected before the nodes speak TLS, and anew once all do (docs/how-to/encrypt-sql.md)."""
RENEWED = Limit(300, 5)
"""The kubelet brings a changed Secret within about a minute and a half, the node looks each ten seconds."""


@pytest.fixture
def plain(kubectl: Kubectl) -> Iterator[Stack]:
    """With certificates SQL would be encrypted from the beginning."""
    with plain_stack(kubectl) as stack:
        yield stack


def rolled(stack: Stack, change: Callable[[], None]) -> None:
    """Every SQL node was started anew after the change, and all is settled again."""
    before = processes(stack)
    change()
    others(stack, before)
    settled_on(stack, sorted(before))


def asked(stack: Stack, authorities: str) -> list[Object]:
    """How each node speaks to a client that trusts these authorities. KubectlError when one can't be verified."""
    hosts = [stack.sql.host_of(node) for node in sorted(processes(stack))]
    said = stack.kubectl.exec(stack.tools.name, *stack.tools.program("tls_probe", *hosts), stdin=authorities.encode())
    found = [json.loads(line) for line in said.splitlines()]
    assert [each["host"] for each in found] == hosts
    return found


def spoken(stack: Stack, authorities: str) -> list[tuple[str, bool]]:
    """Of each node the certificate that it shows and whether it serves plaintext; prints both."""
    found = asked(stack, authorities)
    for each in found:
        plaintext = "served" if each["refused"] is None else f"refused ({each['refused']})"
        say(f"{each['host']}: certificate {each['certificate'][:12]}, plaintext {plaintext}")
    return [(str(each["certificate"]), each["refused"] is None) for each in found]


def clients_are_told(stack: Stack, authorities: str) -> None:
    """The connection Secret has whom to trust, and that the leader speaks TLS."""

    def told() -> bool | Pending:
        there = connection_of(stack)
        speak, trust = "client.server.ssl=true" in there["leaderUrl"], there.get("ca.crt") == authorities
        return (
            True if speak and trust else Pending(f"leaderUrl {'has' if speak else 'lacks'} TLS, ca.crt {'is' if trust else 'is not'} ours")
        )

    wait_for("the connection Secret", told, Limit(120, 1), say)


def encrypted(stack: Stack) -> object:
    return stack.sql.get("herddbcluster", "db")["status"].get("encrypted")


def serve(stack: Stack, issued: Issued) -> None:
    stack.kubectl.apply(issued.secret(SECRET))


def start_drivers(stack: Stack) -> JdbcPod:
    """The pod for HerdDB's driver, and tables for it."""
    empty_checker_tables(stack)
    return JdbcPod(stack.kubectl, "jdbc-tls", str(stack.sql.get("tablespace", TABLESPACE)["status"]["connectionSecret"])).start()


def test_a_running_database_gets_tls_in_two_steps_and_a_renewed_certificate_without_losing_a_row(plain: Stack, tmp_path: Path) -> None:
    stack = plain
    settled_on(stack, sorted(processes(stack)))
    for folder in ("authority", "stranger"):
        (tmp_path / folder).mkdir()
    authority, stranger = Authority(tmp_path / "authority", "the clients' authority"), Authority(tmp_path / "stranger", "a stranger")
    domain = f"{stack.kubectl.namespace}.svc"
    first, second = (authority.issue([f"*.db-herddb-nodes.{domain}", f"*.{domain}"]) for _ in range(2))
    serve(stack, first)
    jdbc = start_drivers(stack)
    histories = ["/tmp/history-before.jsonl", "/tmp/history-after.jsonl"]
    drivers: SteeredProcess = jdbc.work(BEFORE, histories[0])
    writer = WriterProcess(stack.tools, "encrypted").acknowledges()
    drivers.acknowledges()

    with pytest.raises(KubectlError, match="must be Accepted when TLS is added"):
        stack.kubectl.want("herddbcluster", "db", tls={"secretName": SECRET, "plaintext": "Refused"})
    assert encrypted(stack) is None
    with during("TLS comes, plaintext stays", writer):
        rolled(stack, lambda: stack.kubectl.want("herddbcluster", "db", tls={"secretName": SECRET, "plaintext": "Accepted"}))
        assert encrypted(stack) is True
        clients_are_told(stack, authority.certificate)
        assert spoken(stack, authority.certificate) == [(first.fingerprint, True)] * 2
    drivers.acknowledges()

    drivers.stop()
    drivers = jdbc.work(AFTER, histories[1])
    drivers.acknowledges()
    with during("plaintext goes", writer):
        rolled(stack, lambda: stack.kubectl.want("herddbcluster", "db", tls={"plaintext": "Refused"}))
        assert encrypted(stack) is True
        assert spoken(stack, authority.certificate) == [(first.fingerprint, False)] * 2
        with pytest.raises(KubectlError, match="CERTIFICATE_VERIFY_FAILED"):
            asked(stack, stranger.certificate)
    drivers.acknowledges()

    before = processes(stack)

    def renewed() -> bool | Pending:
        old = [each["host"] for each in asked(stack, authority.certificate) if each["certificate"] != second.fingerprint]
        return Pending(f"{len(old)} of {len(before)} SQL nodes still show the old certificate") if old else True

    with during("the certificate is renewed", writer):
        serve(stack, second)
        wait_for("the renewed certificate", renewed, RENEWED, say)
        assert processes(stack) == before, "no node is restarted for it"
    drivers.acknowledges()

    drivers.stop()
    found = [contents(stack)]
    each_copy_has_every_row(stack, writer)
    drivers_lost_nothing(stack, jdbc, histories, [*found, contents(stack)])


def test_a_full_check_tells_of_every_follower_on_request_and_comes_by_itself_on_schedule(stack: Stack) -> None:
    settled_on(stack, sorted(processes(stack)))
    written = "checked_meanwhile"
    writer = WriterProcess(stack.tools, written).acknowledges()
    with during("a full check on request", writer):
        first = check_on_request(stack, written)

    writer.marked("a full check by schedule")
    stack.kubectl.want("tablespace", TABLESPACE, fullCheck={"schedule": "* * * * *", "startingDeadlineSeconds": 30})
    second = next_check(stack, first)
    stack.kubectl.want("tablespace", TABLESPACE, fullCheck=None)
    every_follower_is_judged(stack, second, written)
    weekly = first["schedule"]["declared"]
    assert weekly != second["schedule"]["declared"] == "* * * * * (UTC)"
    assert second["schedule"]["lastScheduleTime"] > second["schedule"]["since"]
    assert second["lastRequest"] == first["lastRequest"], "nobody asked for it"

    def weekly_again() -> bool | Pending:
        return full_check(stack)["schedule"]["declared"] == weekly or Pending("the other schedule is still told of")

    wait_for("the weekly schedule", weekly_again, CHECKED, say)
    writer.acknowledges()
    lost_nothing(writer)
