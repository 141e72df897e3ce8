"""The operator's own port: /healthz, /readyz and /metrics."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest


class HealthServer:
    """`trouble` answers why the process is not alive, `awaited` what it needs to be ready; None if nothing. A process that waits for the
    Lease is alive and ready: it stands by.
    """

    def __init__(self, port: int, trouble: Callable[[], str | None], awaited: Callable[[], str | None]) -> None:
        self._server = ThreadingHTTPServer(("", port), _handler(trouble, awaited))

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Serve from a thread."""
        threading.Thread(target=self._server.serve_forever, name="health", daemon=True).start()

    def stop(self) -> None:
        """Stop serving."""
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
