"""A real S3 server beside the tests (`herdkeeper_e2e.object_store`): it checks signatures, and creates an object once, however many ask.

Two of its processes serve the same buckets with different keys: one for checkpoints, one for archives.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import tempfile
import uuid
from functools import cache
from pathlib import Path

from herdkeeper.shared.names import ARCHIVE_VARIABLES, DESTINATION_VARIABLES, REGION_VARIABLE
from herdkeeper_e2e.object_store import ENDPOINT, Keys
from herdkeeper_e2e.object_store_process import StoreProcess
from herdkeeper_jobs.storage.object_path import ObjectPath
from herdkeeper_jobs.storage.object_store import StoreSettings

# Reserves both ports until the first test wants a bucket.
_HELD, _HELD_FOR_ARCHIVES = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
_PORT, _PORT_FOR_ARCHIVES = (each.getsockname()[1] for each in (_HELD, _HELD_FOR_ARCHIVES))
_KEYS, _KEYS_OF_ARCHIVES = Keys("an-id", "a secret"), Keys("archives-id", "another secret")
ADDRESS, ARCHIVES_ADDRESS = (f"http://127.0.0.1:{port}" for port in (_PORT, _PORT_FOR_ARCHIVES))
OF_CHECKPOINTS = {ENDPOINT: ADDRESS, REGION_VARIABLE: "us-east-1", **_KEYS.variables}
SETTINGS = StoreSettings("s3", OF_CHECKPOINTS)
OF_ARCHIVES = {ENDPOINT: ARCHIVES_ADDRESS, **_KEYS_OF_ARCHIVES.variables}


def announce() -> None:
    """Sets the stores' variables for processes started from now on. The stores need not serve yet."""
    told = {"": OF_CHECKPOINTS, DESTINATION_VARIABLES: OF_CHECKPOINTS, ARCHIVE_VARIABLES: OF_ARCHIVES}
    os.environ |= {f"{prefix}{name}": value for prefix, variables in told.items() for name, value in variables.items()}


@cache
def _served() -> tuple[Path, list[StoreProcess]]:
    """The folder of the buckets, and the servers, which run while referenced."""
    folder = Path(tempfile.mkdtemp(prefix="buckets-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    servers = []
    for held, port, keys in ((_HELD, _PORT, _KEYS), (_HELD_FOR_ARCHIVES, _PORT_FOR_ARCHIVES, _KEYS_OF_ARCHIVES)):
        held.close()
        servers.append(StoreProcess.start(folder, port, keys))
    return folder, servers


def start_another(port: int, certificate: tuple[Path, Path] | None = None) -> StoreProcess:
    """Starts another server of the same buckets, with the first one's keys. The caller stops it."""
    return StoreProcess.start(_served()[0], port, _KEYS, certificate)


def new_bucket(name: str | None = None) -> ObjectPath:
    """An empty bucket."""
    name = name or f"bucket-{uuid.uuid4().hex}"
    (_served()[0] / name).mkdir(exist_ok=True)
    return ObjectPath("s3", name)
