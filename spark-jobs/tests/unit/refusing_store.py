"""Stands before a real S3 server and refuses some requests, as a store does that is busy. It hands on all others as they are."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


@dataclass
class RefusingStore:
    """`refusals`: what the next requests of one method get, each a status and a code of S3's; `refused` how many had one."""

    behind: str
    method: str = "PUT"
    refusals: list[tuple[int, str]] = field(default_factory=list)
    refused: int = 0

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Its address. Signatures hold behind it, since they are of the name of the host that the client was given."""
        handler = type("_OfThisOne", (_Handler,), {"store": self})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()


class _Handler(BaseHTTPRequestHandler):
    store: RefusingStore
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.command == self.store.method and self.store.refusals:
            status, code = self.store.refusals.pop(0)
            self.store.refused += 1
            said = f"<Error><Code>{code}</Code><Message>later</Message></Error>".encode()
            return self.reply(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(said)))], said)
        behind = http.client.HTTPConnection(urlsplit(self.store.behind).netloc, timeout=60)
        behind.request(self.command, self.path, body, dict(self.headers))
        answered = behind.getresponse()
        said = answered.read()
        headers = [each for each in answered.getheaders() if each[0].lower() not in ("connection", "transfer-encoding")]
        if "Content-Length" not in answered.headers:
            headers.append(("Content-Length", str(len(said))))
        return self.reply(answered.status, headers, said)

    def reply(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_GET = do_HEAD = do_POST = do_DELETE = answer  # noqa: N815

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing of each request."""
