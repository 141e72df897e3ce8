"""The operator's process waits for the API server: one that ended would be started again later and later."""

from __future__ import annotations

import contextlib
import socket
import urllib.request
from collections.abc import Iterator
from types import SimpleNamespace
from urllib.error import HTTPError as Refused

import pytest
from hostile_bytes import hostile
from hypothesis import HealthCheck, given, settings
from kubernetes.client import ApiException
from kubernetes.dynamic.exceptions import ResourceNotFoundError
from urllib3.exceptions import HTTPError

from herdkeeper.api import KINDS
from herdkeeper.process import main
from herdkeeper.process.health import MOST_CONNECTIONS, HealthServer

_REQUESTS = (
    b"GET /healthz HTTP/1.0\r\n\r\n",
    b"GET /readyz?verbose=%41 HTTP/1.1\r\nHost: operator\r\nContent-Length: 3\r\n\r\nabc",
)


class Discovery:
    """What kinds the API server serves, after it failed with each of some errors."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.asked: list[str] = []

    def get(self, api_version: str, kind: str) -> str:
        if self.errors:
            raise self.errors.pop(0)
        self.asked.append(kind)
        return kind


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(main, "time", SimpleNamespace(sleep=found.append))  # other threads sleep, too
    return found


def test_an_api_server_that_does_not_answer_is_asked_again(pauses: list[float]) -> None:
    errors, client = [HTTPError("refused"), ApiException(status=503)], SimpleNamespace(resources=Discovery())

    def connect() -> SimpleNamespace:
        if errors:
            raise errors.pop(0)
        return client

    assert main.once_served(connect) is client
    assert pauses == [main.AGAIN_SECONDS] * 2


def test_an_api_server_that_has_just_started_is_waited_for_until_it_serves_our_kinds(pauses: list[float]) -> None:
    discovery = Discovery(ResourceNotFoundError("No matches found"))
    main.once_served(lambda: SimpleNamespace(resources=discovery))
    assert (discovery.asked, len(pauses)) == ([kind.KIND for kind in KINDS], 1)


@pytest.fixture
def health() -> Iterator[tuple[HealthServer, dict[str, str | None]]]:
    why: dict[str, str | None] = {"trouble": None, "awaited": None}
    server = HealthServer(0, trouble=lambda: why["trouble"], awaited=lambda: why["awaited"])
    server.start()
    yield server, why
    server.stop()


@pytest.mark.parametrize(
    ("trouble", "awaited", "alive", "ready"),
    [
        (None, None, 200, 200),
        (None, "the API server", 200, 503),
        ("a worker hangs", None, 503, 503),
    ],
)
def test_a_process_that_waits_for_the_api_server_is_alive_and_not_ready(
    health: tuple[HealthServer, dict[str, str | None]], trouble: str | None, awaited: str | None, alive: int, ready: int
) -> None:
    server, why = health
    why |= {"trouble": trouble, "awaited": awaited}
    assert [status(server, path) for path in ("healthz", "readyz")] == [alive, ready]


def begun(server: HealthServer) -> socket.socket:
    """A request that its client does not end."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=120)
    connection.sendall(b"GET /healthz HTTP/1.0\r\nX: ")
    return connection


def test_whoever_opens_many_connections_keeps_no_probe_from_its_answer(health: tuple[HealthServer, dict[str, str | None]]) -> None:
    server, _ = health
    with contextlib.ExitStack() as connections:
        opened = [connections.enter_context(begun(server)) for _ in range(MOST_CONNECTIONS + 5)]
        assert [connection.recv(1) for connection in opened[:5]] == [b""] * 5
        assert status(server, "healthz") == 200


def test_a_request_without_end_is_given_up(health: tuple[HealthServer, dict[str, str | None]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("herdkeeper.process.health.CONNECTION_SECONDS", 0.1)
    with begun(health[0]) as connection:
        assert connection.recv(1) == b""


@given(sent=hostile(_REQUESTS))
@settings(max_examples=200, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_client_sends_its_connection_ends_without_a_traceback(
    health: tuple[HealthServer, dict[str, str | None]], capsys: pytest.CaptureFixture[str], sent: bytes
) -> None:
    with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", health[0].port), timeout=120) as connection:
        connection.sendall(sent)
        with contextlib.suppress(OSError):  # it has ended already
            connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):
            pass
    assert status(health[0], "healthz") == 200
    assert capsys.readouterr().err == ""


def status(server: HealthServer, path: str) -> int:
    try:
        return int(urllib.request.urlopen(f"http://127.0.0.1:{server.port}/{path}", timeout=120).status)
    except Refused as error:
        return error.code
