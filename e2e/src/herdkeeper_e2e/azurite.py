"""Azurite, Microsoft's own Azure Blob Storage for tests: a process on this machine, with one storage account and one container."""

from __future__ import annotations

import base64
import hashlib
import hmac
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime

from herdkeeper_e2e.control_plane import REPOSITORY
from herdkeeper_e2e.free_ports import free_port
from herdkeeper_e2e.server_processes import servers

CONTAINER = "backups"
_ACCOUNT, _KEY = "herdkeeper", b"k" * 64
_HTTP_CREATED, _HTTP_CONFLICT = 201, 409


@contextmanager
def running_azurite() -> Iterator[dict[str, str]]:
    """The variables with which its storage account is opened, once the container is there; it ends with the block."""
    program = subprocess.run([REPOSITORY / "e2e/bootstrap/azurite.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    key = base64.b64encode(_KEY).decode()
    with servers() as running:
        port = free_port()
        serves = [program, "--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(running.folder), "--skipApiVersionCheck"]
        running.run("azurite", ["env", f"AZURITE_ACCOUNTS={_ACCOUNT}:{key}", *serves, "--disableTelemetry"])
        address = f"http://127.0.0.1:{port}/{_ACCOUNT}"
        running.wait("azurite", lambda: _has_container(address))
        yield {"AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": key, "AZURE_STORAGE_ENDPOINT": address}


def _has_container(address: str) -> bool:
    """Makes the container; whether it is there. obstore makes none."""
    headers = {"x-ms-date": format_datetime(datetime.now(UTC), usegmt=True), "x-ms-version": "2023-11-03"}
    told = "".join(f"{name}:{value}\n" for name, value in headers.items())
    signed = "PUT" + "\n" * 12 + f"{told}/{_ACCOUNT}/{_ACCOUNT}/{CONTAINER}\nrestype:container"
    signature = base64.b64encode(hmac.new(_KEY, signed.encode(), hashlib.sha256).digest()).decode()
    asked = urllib.request.Request(
        f"{address}/{CONTAINER}?restype=container", method="PUT", headers={**headers, "Authorization": f"SharedKey {_ACCOUNT}:{signature}"}
    )
    try:
        with urllib.request.urlopen(asked, timeout=5) as answer:
            return bool(answer.status == _HTTP_CREATED)
    except urllib.error.HTTPError as error:
        if error.code == _HTTP_CONFLICT:
            return True
        raise
    except OSError:
        return False
