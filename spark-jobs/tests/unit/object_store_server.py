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
from functools import cache

from herdkeeper_jobs.storage.object_path import ACCESS_KEY_ID, ENDPOINT, REGION, SECRET_ACCESS_KEY, ObjectPath, StoreSettings

_LISTENING = socket.create_server(("127.0.0.1", 0))
ADDRESS = f"http://127.0.0.1:{_LISTENING.getsockname()[1]}"
SETTINGS = StoreSettings("an id", "a secret", ADDRESS)


def announce() -> None:
    """Tells processes that are started from now on where the store is. It needs not serve yet."""
    os.environ |= {ENDPOINT: ADDRESS, REGION: SETTINGS.region, ACCESS_KEY_ID: "an id", SECRET_ACCESS_KEY: "a secret"}


@cache
def _serve() -> None:
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, application, threaded=False, fd=_LISTENING.fileno())
    threading.Thread(target=server.serve_forever, daemon=True).start()


def new_bucket() -> ObjectPath:
    """An empty bucket."""
    import requests

    _serve()
    name = f"bucket-{uuid.uuid4().hex}"
    requests.put(f"{ADDRESS}/{name}", timeout=60).raise_for_status()
    return ObjectPath(name)
