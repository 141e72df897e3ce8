"""The operator's own port: /healthz, /readyz and /metrics. No NetworkPolicy guards it, so any pod may connect. Therefore connections are
limited in number and time.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

MOST_CONNECTIONS = 100
"""Each is a thread. One more closes the oldest. An answer takes milliseconds, so no client is still waiting for one there."""
CONNECTION_SECONDS = 20.0
"""For a request and its answer together."""


class _Server(ThreadingHTTPServer):
    """Closes connections that are too many, or too old."""

    request_queue_size = 128

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._open: OrderedDict[socket.socket, float] = OrderedDict()
        self._lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open[request] = time.monotonic()
            if len(self._open) > MOST_CONNECTIONS:
                _end(self._open.popitem(last=False)[0])
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Called by `serve_forever` twice a second, and at each connection."""
        with self._lock:
            for request in [each for each, since in self._open.items() if time.monotonic() - since > CONNECTION_SECONDS]:
                del self._open[request]
                _end(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Logs no traceback for a client that is gone, or was disconnected."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def _end(connection: socket.socket) -> None:
    """The connection's thread then reads its end, and closes it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class HealthServer:
    """`trouble`: why the process is not alive; `awaited`: what it needs to be ready; or None. One that waits for the Lease stands by."""

    def __init__(self, port: int, trouble: Callable[[], str | None], awaited: Callable[[], str | None]) -> None:
        self._server = _Server(("", port), _handler(trouble, awaited))

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, name="health", daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(trouble: Callable[[], str | None], awaited: Callable[[], str | None]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            match self.path.partition("?")[0]:
                case "/healthz":
                    self._tell(trouble())
                case "/readyz":
                    self._tell(trouble() or awaited())
                case "/metrics":
                    self._answer(200, generate_latest(), CONTENT_TYPE_LATEST)
                case _:
                    self._answer(404, b"/healthz, /readyz and /metrics are here\n", "text/plain")

        def _tell(self, why_not: str | None) -> None:
            self._answer(200 if why_not is None else 503, (why_not or "ok").encode() + b"\n", "text/plain")

        def _answer(self, code: int, body: bytes, content_type: str) -> None:
            self.send_response(code)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Probes are not worth a line."""

    return Handler
