"""An S3 server in the tests' own process: moto's, which answers `If-None-Match: *` with 412.

It serves one request after the other, so that a conditional create is decided at once, as a store has to: moto itself looks and writes in
two steps.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from herdkeeper.domain.names import ARCHIVE_VARIABLES
from herdkeeper_jobs.storage.object_path import ACCESS_KEY_ID, ENDPOINT, REGION, SECRET_ACCESS_KEY, ObjectPath, StoreSettings

_LISTENING, _LISTENING_FOR_ARCHIVES = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
ADDRESS, ARCHIVES_ADDRESS = (f"http://127.0.0.1:{each.getsockname()[1]}" for each in (_LISTENING, _LISTENING_FOR_ARCHIVES))
SETTINGS = StoreSettings("an id", "a secret", ADDRESS)
OF_ARCHIVES = {ENDPOINT: ARCHIVES_ADDRESS, ACCESS_KEY_ID: "archives-id", SECRET_ACCESS_KEY: "another secret"}


def announce() -> None:
    """Tells processes that are started from now on where the stores are: the one, and another one for archives. Neither needs serve yet."""
    os.environ |= {ENDPOINT: ADDRESS, REGION: SETTINGS.region, ACCESS_KEY_ID: "an id", SECRET_ACCESS_KEY: "a secret"}
    os.environ |= {f"{ARCHIVE_VARIABLES}{name}": value for name, value in OF_ARCHIVES.items()}


@cache
def _serve() -> None:
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = DomainDispatcherApplication(create_backend_app)
    for listening, answers in ((_LISTENING, application), (_LISTENING_FOR_ARCHIVES, _only_for("archives-id", application))):
        server = make_server("127.0.0.1", 0, answers, threaded=False, fd=listening.fileno())
        threading.Thread(target=server.serve_forever, daemon=True).start()


def _only_for(access_key_id: str, application: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """A store that knows one key: moto itself knows whoever asks."""

    def answer(environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if f"Credential={access_key_id}/" in environment.get("HTTP_AUTHORIZATION", ""):
            return application(environment, start)
        start("403 Forbidden", [("Content-Type", "application/xml")])
        return [b"<Error><Code>InvalidAccessKeyId</Code><Message>This store does not know that key</Message></Error>"]

    return answer


def new_bucket(name: str | None = None) -> ObjectPath:
    """An empty bucket. Both servers have the same ones."""
    import requests

    _serve()
    name = name or f"bucket-{uuid.uuid4().hex}"
    requests.put(f"{ADDRESS}/{name}", timeout=60).raise_for_status()
    return ObjectPath(name)
