"""Attacks on the HTTP port of a real bookie and of real autorecovery: who reaches it reads a little, and changes nothing.

Only a real bookie shows which spellings of a path, and which methods, its web server accepts for an endpoint.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from synthetic_ledgers import SyntheticLedger, write_entries, write_metadata
from waits import wait_until

from herdkeeper.bookkeeper.execute import BookieAdmin, order
from herdkeeper.clients.bounded_http import Answer as HttpAnswer
from herdkeeper.clients.bounded_http import Question
from herdkeeper.clients.bounded_http import ask as send
from herdkeeper.clients.kubernetes_writer import RefusedError
from herdkeeper.codecs.bookkeeper.layout import LedgerLayout, ledger_path
from herdkeeper.codecs.bookkeeper.protocol import ReadCode
from herdkeeper_e2e.free_ports import free_port
from herdkeeper_e2e.monitoring.served import what_to_add
from herdkeeper_e2e.server_processes import AUTORECOVERY, GUARDED_HTTP, LEDGERS_ROOT, TOKEN, Servers, servers
from herdkeeper_jobs.bookkeeper.connection import BookieConnection
from herdkeeper_jobs.bookkeeper.metadata import open_catalog

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
BOOKIE = "bookie-0"
BOOKKEEPERS_OWN = {**GUARDED_HTTP, "httpServerClass": "org.apache.bookkeeper.http.vertx.VertxHttpServer"}
LOST, KEPT, ENTRIES = 1, 2, 3
"""Two ledgers: an unguarded bookie deletes one, a guarded bookie keeps the other."""
PATIENCE_SECONDS = 60
READ, DELETE = "/api/v1/ledger/read", "/api/v1/ledger/delete"
MODE, COLLECT = "/api/v1/bookie/state/readonly", "/api/v1/bookie/gc"
UNPROVEN, REFUSED, UNKNOWN = 401, 403, 404
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "delete", "LEDGER")
HEADERS: tuple[dict[str, str], ...] = (
    {},
    {"X-HTTP-Method-Override": "DELETE"},
    {"X-Original-URL": f"{DELETE}?ledger_id={KEPT}"},
    {"X-Rewrite-URL": f"{DELETE}?ledger_id={KEPT}"},
    {"X-Forwarded-Prefix": "/metrics"},
)


@dataclass(frozen=True)
class Answer:
    """An HTTP response."""

    status: int
    body: str


@dataclass(frozen=True)
class Stage:
    """A guarded bookie and guarded autorecovery, with their HTTP ports, and the unguarded bookie's answers."""

    servers: Servers
    bookie: int
    autorecovery: int
    unguarded: Mapping[str, Answer]
    ordered_unguarded: bool

    def ledger_is_there(self) -> bool:
        """Whether its metadata exists, and all of its entries on the bookie."""
        with open_catalog(self.servers.zookeeper, LEDGERS_ROOT) as catalog:
            address = catalog.bookie_addresses()[BOOKIE]
        with self.servers.client() as client, BookieConnection(BOOKIE, address, 15.0) as connection:
            codes = {answer.code for answer in connection.read_entries(KEPT, range(ENTRIES))}
            return client.exists(LEDGERS_ROOT + ledger_path(LedgerLayout.HIERARCHICAL, KEPT)) is not None and codes == {ReadCode.OK}


def ask(port: int, method: str, target: str, body: str = "", headers: Mapping[str, str] | None = None) -> Answer:
    """Sends a request unchanged: no library corrects its target or its method."""
    lines = {"Host": "bookie", "Connection": "close", "Content-Length": str(len(body)), **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    with socket.create_connection(("127.0.0.1", port), timeout=30) as stream:
        stream.sendall(f"{method} {target} HTTP/1.1\r\n{head}\r\n{body}".encode())
        answer = b"".join(iter(lambda: stream.recv(65536), b"")).decode(errors="replace")
    status = re.match(r"HTTP/1\.[01] (\d{3})", answer)
    assert status is not None, answer
    return Answer(int(status[1]), answer.partition("\r\n\r\n")[2])


def spellings(path: str) -> Iterator[str]:
    """Ways to write a path that a guard and the server behind it may interpret differently."""
    start, _, last = path.rpartition("/")
    for spelled in (
        path,
        f"{path}/",
        f"/{path}",
        path.replace("/", "//"),
        f"{start}%2F{last}",
        f"{start}%2f{last}",
        f"{start}%252F{last}",
        f"{start}/%{ord(last[0]):02x}{last[1:]}",
        f"{start}/./{last}",
        f"{start}/x/../{last}",
        f"{start}/%2e/{last}",
        f"{start}/x/%2e%2e/{last}",
        f"{start}/x/..;/{last}",
        f"/metrics/..{path}",
        f"/metrics/..;{path}",
        f"/metrics/%2e%2e{path}",
        f"/heartbeat;{path}",
        f"/metrics%00{path}",
        f"{path};a=b",
        f"{path}.json",
        f"{path}%20",
        f"{path}%00",
        f"{path}%3F",
        f"{path}#/metrics",
        path.upper(),
        path.title(),
        path.replace("/", "\\"),
        f"http://bookie{path}",
        f"http://bookie/metrics/..{path}",
        path.removeprefix("/"),
    ):
        yield f"{spelled}?ledger_id={KEPT}"
    yield f"{path}?a=/metrics&ledger_id={KEPT}"
    yield f"{path}?ledger_id={KEPT}&ledger_id={LOST}"
    yield f"{path}?ledger%5Fid={KEPT}"
    yield f"{path}?ledger_id=+{KEPT};"
    yield f"/metrics?path={path}&ledger_id={KEPT}"
    yield f"/metrics?{path}?ledger_id={KEPT}"


HARMLESS = ("/metrics?", "/heartbeat;")
"""Prefixes that are another, open endpoint."""


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """Two ledgers on one bookie, which first runs BookKeeper's own HTTP server, and loses one of them by it."""
    with servers() as running:
        of_bookie, of_autorecovery = free_port(), free_port()
        running.start_zookeeper()
        running.start_bookies(1, {**BOOKKEEPERS_OWN, "httpServerPort": of_bookie})
        ledgers = [SyntheticLedger(number, (BOOKIE,), ENTRIES, 100) for number in (LOST, KEPT)]
        with running.client() as client:
            write_metadata(client, LEDGERS_ROOT, ledgers)
        with open_catalog(running.zookeeper, LEDGERS_ROOT) as catalog:
            write_entries(ledgers, catalog.bookie_addresses())
        unguarded = {path: ask(of_bookie, method, f"{path}?ledger_id={LOST}") for method, path in (("GET", READ), ("DELETE", DELETE))}
        url = f"http://127.0.0.1:{of_bookie}{MODE}"
        ordered = []
        for wanted in (True, False):
            order(url, BOOKIE, json.dumps({"readOnly": wanted}).encode(), TOKEN)
            ordered.append(read_only(of_bookie))

        def guard(folder: Path) -> None:
            file = folder / "bk_server.conf"
            file.write_text(file.read_text().replace(BOOKKEEPERS_OWN["httpServerClass"], GUARDED_HTTP["httpServerClass"]))

        running.restart_bookie(BOOKIE, guard)
        running.start_autorecovery({**GUARDED_HTTP, "httpServerPort": of_autorecovery})
        for port, name in ((of_bookie, BOOKIE), (of_autorecovery, AUTORECOVERY)):
            running.wait(name, lambda port=port: answers(port))  # type: ignore[misc]
        yield Stage(running, of_bookie, of_autorecovery, unguarded, ordered == [True, False])


def counted(port: int, reason: str = "closed") -> int:
    """How many requests the server has refused, by its metrics."""
    found = re.search(rf'^herdkeeper_refused_total\{{reason="{reason}"\}} (\d+)$', ask(port, "GET", "/metrics").body, re.MULTILINE)
    assert found is not None
    return int(found[1])


def answers(port: int) -> bool:
    """Whether a server answers there."""
    try:
        return ask(port, "GET", "/heartbeat").status == 200
    except OSError:
        return False


def test_the_attack_works_where_the_port_is_not_guarded(stage: Stage) -> None:
    """Without this the other tests would prove nothing."""
    assert stage.unguarded[READ].status == 200
    assert json.loads(stage.unguarded[READ].body).keys() == {"0", "1", "2"}
    assert stage.unguarded[DELETE] == Answer(200, f'"Deleted ledger: {LOST}"')
    with stage.servers.client() as client:
        assert client.exists(LEDGERS_ROOT + ledger_path(LedgerLayout.HIERARCHICAL, LOST)) is None


@pytest.mark.parametrize("method", METHODS)
def test_no_spelling_of_a_path_and_no_method_deletes_a_ledger_or_shows_an_entry(stage: Stage, method: str) -> None:
    got_through = []
    for port in (stage.bookie, stage.autorecovery):
        for target in (*spellings(DELETE), *spellings(READ)):
            answer = ask(port, method, target)
            harmless = target.startswith(HARMLESS) and f"ledger: {KEPT}" not in answer.body
            if answer.status < 400 and not harmless:
                got_through.append((target, answer))
    assert got_through == []
    assert stage.ledger_is_there()


@pytest.mark.parametrize("headers", HEADERS, ids=lambda headers: next(iter(headers), "none"))
def test_no_header_opens_what_is_closed(stage: Stage, headers: Mapping[str, str]) -> None:
    for port in (stage.bookie, stage.autorecovery):
        for method, path in (("DELETE", DELETE), ("POST", DELETE), ("GET", READ)):
            assert ask(port, method, f"{path}?ledger_id={KEPT}", headers=headers).status == REFUSED
        assert "# TYPE" in ask(port, "GET", "/metrics", headers=headers).body
    assert stage.ledger_is_there()


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        ("GET", "/api/v1/config/server_config", ""),
        ("PUT", "/api/v1/config/server_config", '{"readOnlyModeEnabled": false}'),
        ("GET", "/api/v1/ledger/list", ""),
        ("GET", f"/api/v1/ledger/metadata?ledger_id={KEPT}", ""),
        ("GET", "/api/v1/bookie/list_disk_file", ""),
        ("PUT", "/api/v1/bookie/expand_storage", ""),
        ("PUT", "/api/v1/bookie/gc/suspend_compaction", '{"suspendMajor": "true", "suspendMinor": "true"}'),
        ("PUT", "/api/v1/bookie/entry_location_compact", '{"entryLocationRocksDBCompact": "true"}'),
        ("GET", "/api/v1/bookie/sanity", ""),
        ("PUT", "/api/v1/autorecovery/status?enabled=false", ""),
        ("PUT", "/api/v1/autorecovery/bookie", f'{{"bookie_src": ["{BOOKIE}"], "delete_cookie": true}}'),
        ("PUT", "/api/v1/autorecovery/lost_bookie_recovery_delay", '{"delay_seconds": 0}'),
        ("PUT", "/api/v1/autorecovery/trigger_audit", ""),
        ("PUT", "/api/v1/autorecovery/decommission", f'{{"bookie_src": "{BOOKIE}"}}'),
    ],
)
def test_what_nobody_needs_is_refused(stage: Stage, method: str, target: str, body: str) -> None:
    for port in (stage.bookie, stage.autorecovery):
        before = counted(port)
        answer = ask(port, method, target, body)
        assert answer.status == REFUSED
        assert "is closed: use BookKeeper's shell" in answer.body
        assert counted(port) == before + 1
    log = (stage.servers.folder / f"{BOOKIE}.log").read_text(errors="replace")
    assert re.search(r"refused 127\.0\.0\.1:\d+ \(closed\)", log)


@pytest.mark.parametrize(
    "target", ["/", "/api", "/api/v1", "/api/v1/ledger", "/api/v2/ledger/delete", "/admin", "/metrics/x", "/favicon.ico"]
)
def test_an_unknown_path_is_not_there(stage: Stage, target: str) -> None:
    for port in (stage.bookie, stage.autorecovery):
        assert {ask(port, method, target).status for method in ("GET", "PUT", "POST", "DELETE")} == {UNKNOWN}


def test_probes_scrapers_and_the_state_are_served(stage: Stage) -> None:
    assert ask(stage.bookie, "GET", "/api/v1/bookie/is_ready").status == 200
    state = json.loads(ask(stage.bookie, "GET", "/api/v1/bookie/state").body)
    assert (state["running"], state["readOnly"], state["shuttingDown"]) == (True, False, False)
    wait_until("the bookie's own metrics", lambda: "bookie_SERVER_STATUS" in ask(stage.bookie, "GET", "/metrics").body, PATIENCE_SECONDS)
    for port in (stage.bookie, stage.autorecovery):
        assert ask(port, "GET", "/heartbeat").status == 200
        assert ask(port, "GET", "/metrics").status == 200


def test_each_metric_that_is_served_is_listed(stage: Stage) -> None:
    wait_until("the auditor's metrics", lambda: "auditor_" in ask(stage.autorecovery, "GET", "/metrics").body, PATIENCE_SECONDS)
    for port, server in ((stage.bookie, "bookie"), (stage.autorecovery, "autorecovery")):
        assert what_to_add(server, ask(port, "GET", "/metrics").body) == ""


def read_only(port: int) -> bool:
    """The mode of a bookie."""
    return bool(json.loads(ask(port, "GET", MODE).body)["readOnly"])


@pytest.mark.parametrize(
    "shown",
    ["", f"Bearer {TOKEN}", TOKEN, "HMAC-SHA256 ", "HMAC-SHA256 " + "0" * 64, f"HMAC-SHA256 {TOKEN}"],
    ids=lambda shown: shown[:16] or "none",
)
def test_an_order_without_a_proof_of_the_token_is_refused_counted_and_logged(stage: Stage, shown: str) -> None:
    headers = {"Authorization": shown} if shown else {}
    for port in (stage.bookie, stage.autorecovery):  # autorecovery has no token: it takes no orders
        before = counted(port, "token")
        tried = [ask(port, "PUT", MODE, '{"readOnly": true}', headers), ask(port, "PUT", COLLECT, "", headers), ask(port, "POST", MODE, "")]
        assert {answer.status for answer in tried} == {UNPROVEN}
        assert counted(port, "token") == before + 3
    assert not read_only(stage.bookie)
    log = (stage.servers.folder / f"{BOOKIE}.log").read_text(errors="replace")
    assert re.search(r"refused 127\.0\.0\.1:\d+ \(token\): \w+ \w+, without a proof", log)
    assert TOKEN not in log


def test_the_operator_makes_a_bookie_read_only_and_writable_again_by_its_token_alone(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("herdkeeper.shared.names.BOOKIE_ADMIN_PORT", stage.bookie)
    for wanted in (True, False):
        BookieAdmin().set_read_only(BOOKIE, "127.0.0.1", wanted, TOKEN)
        assert read_only(stage.bookie) is wanted
    with pytest.raises(RefusedError, match="answered 401"):
        BookieAdmin().set_read_only(BOOKIE, "127.0.0.1", True, "another-token")
    assert not read_only(stage.bookie)


def test_who_overhears_an_order_can_not_give_it_again_nor_another_one(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    overheard: list[Question] = []

    def listened(question: Question) -> HttpAnswer:
        overheard.append(question)
        return send(question)

    monkeypatch.setattr("herdkeeper.bookkeeper.execute.ask", listened)
    url = f"http://127.0.0.1:{stage.bookie}{MODE}"
    order(url, BOOKIE, b'{"readOnly": false}', TOKEN)
    (given,) = [question for question in overheard if question.method == "PUT"]
    assert TOKEN not in str(given.headers)
    for again in (given, replace(given, body=b'{"readOnly": true}'), replace(given, url=f"http://127.0.0.1:{stage.bookie}{COLLECT}")):
        assert send(again).status == UNPROVEN
    assert not read_only(stage.bookie)


def test_an_order_to_one_bookie_is_not_given_to_another_one_that_answers_in_its_place(stage: Stage) -> None:
    with pytest.raises(RefusedError, match=f"the challenge of '{BOOKIE}', not of another"):
        order(f"http://127.0.0.1:{stage.bookie}{MODE}", "another", b'{"readOnly": true}', TOKEN)
    assert not read_only(stage.bookie)


def test_a_bookie_of_an_earlier_image_is_ordered_as_before(stage: Stage) -> None:
    assert stage.ordered_unguarded


def test_garbage_collection_keeps_a_ledger_that_metadata_has(stage: Stage) -> None:
    for body in (b"", b'{"forceMajor": true, "forceMinor": true}'):
        order(f"http://127.0.0.1:{stage.bookie}{COLLECT}", BOOKIE, body, TOKEN)
    assert stage.ledger_is_there()
