"""A cloud in the tests' own process: it tells pods who they are, as Amazon, Google and Azure do, and keeps objects for whoever shows that.

It notes with what each request came, and decides a conditional create as each of the three says it: by a status of its own.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

TOKEN = "of-the-pod"
_LATER = "2099-01-01T00:00:00Z"
_STS = f"""<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{TOKEN}</AccessKeyId>
<SecretAccessKey>a-secret</SecretAccessKey><SessionToken>a-session</SessionToken><Expiration>{_LATER}</Expiration></Credentials>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"""
_OF_MACHINE = {"AccessKeyId": TOKEN, "SecretAccessKey": "a-secret", "Token": "a-session", "Expiration": _LATER}
_BEARER = json.dumps({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600})
_TAKEN = {"gs": (412, "PreconditionFailed"), "s3": (412, "PreconditionFailed"), "az": (409, "BlobAlreadyExists")}
_CONDITIONS = {"gs": ("x-goog-if-generation-match", "0"), "s3": ("If-None-Match", "*"), "az": ("If-None-Match", "*")}


@dataclass
class PlayedCloud:
    """`scheme`: whose; `asked`: who asked for objects, and how (the header `Authorization`); `identities`: bodies and paths of requests
    for an identity; `objects` by path."""

    scheme: str
    asked: list[str] = field(default_factory=list)
    identities: list[str] = field(default_factory=list)
    objects: dict[str, bytes] = field(default_factory=dict)
    deciding: threading.Lock = field(default_factory=threading.Lock)
    heeds_conditions: bool = True

    @contextmanager
    def serving(self, certificate: tuple[Path, Path] | None = None) -> Iterator[str]:
        """Its host and port."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("_OfThisOne", (_Handler,), {"cloud": self}))
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()

    def identity(self, path: str, query: str, body: str) -> str | None:
        """The answer to who asks for one; None for a request of another kind."""
        if "Action=AssumeRoleWithWebIdentity" in query + body:
            return _STS
        if path.endswith(("/oauth2/v2.0/token", "/service-accounts/default/token")):
            return _BEARER
        if path == "/latest/api/token":
            return "a-token"
        if path == "/latest/meta-data/iam/security-credentials/":
            return "a-role"
        return json.dumps(_OF_MACHINE) if path == "/latest/meta-data/iam/security-credentials/a-role" else None


class _Handler(BaseHTTPRequestHandler):
    cloud: PlayedCloud
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        asked = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        told = self.cloud.identity(asked.path, asked.query, body.decode(errors="replace"))
        if told is not None:
            self.cloud.identities.append(f"{asked.path}?{asked.query} {body.decode()}")
            return self.reply(200, told.encode())
        self.cloud.asked.append(f"{self.headers.get('Authorization')} {self.headers.get('x-amz-security-token', '')}".strip())
        return self.object(asked.path, body)

    def object(self, path: str, body: bytes) -> None:
        objects = self.cloud.objects
        header, value = _CONDITIONS[self.cloud.scheme]
        if self.command == "DELETE":
            objects.pop(path, None)
            return self.reply(202 if self.cloud.scheme == "az" else 204, b"")
        if self.command == "PUT":
            with self.cloud.deciding:
                taken = path in objects and self.cloud.heeds_conditions and self.headers.get(header) == value
                if not taken:
                    objects[path] = body
            status, code = _TAKEN[self.cloud.scheme]
            if taken:
                return self.reply(status, f"<Error><Code>{code}</Code><Message>taken</Message></Error>".encode())
            return self.reply(201 if self.cloud.scheme == "az" else 200, b"")
        return self.reply(200, objects[path]) if path in objects else self.reply(404, b"<Error><Code>NoSuchKey</Code></Error>")

    def reply(self, status: int, body: bytes) -> None:
        self.send_response_only(status)
        for name, value in (
            ("Content-Length", str(len(body))),
            ("ETag", '"1"'),
            ("Last-Modified", "Wed, 25 Nov 2026 12:00:00 GMT"),
            ("x-goog-generation", "1"),
        ):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_PUT = do_GET = do_HEAD = do_POST = do_DELETE = answer  # noqa: N815

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing of each request."""
