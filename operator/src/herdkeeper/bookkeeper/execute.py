"""Actions over a bookie's admin port (BookKeeper 4.18, httpServerPort). Each is counted."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any, Protocol

from herdkeeper.clients.counters import WRITES
from herdkeeper.clients.kubernetes_writer import RefusedError
from herdkeeper.shared import names

ANSWER_SECONDS = 10.0
"""The change is made durable on the bookie's disks and in ZooKeeper before it answers."""


class BookieAdmin(Protocol):
    """What can be asked of a bookie."""

    def set_read_only(self, bookie_id: str, host: str, read_only: bool) -> None:
        """Change its mode, and see that it changed. Raises RefusedError."""


class HttpBookieAdmin:
    """A BookieAdmin that asks the network."""

    def set_read_only(self, bookie_id: str, host: str, read_only: bool) -> None:
        """See BookieAdmin. A success code alone proves nothing here: business errors come with any code."""
        url = f"http://{host}:{names.BOOKIE_ADMIN_PORT}/api/v1/bookie/state/readonly"
        _ask(urllib.request.Request(url, json.dumps({"readOnly": read_only}).encode(), method="PUT"))
        found = _ask(urllib.request.Request(url))
        if found.get("readOnly") is not read_only:
            raise RefusedError(f"{bookie_id} answers that readOnly is {found.get('readOnly')} after it was set to {read_only}")
        WRITES.labels("put", "Bookie").inc()


def _ask(request: urllib.request.Request) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:  # noqa: S310 - the URLs are made here, all http
            found = json.load(answer)
    except urllib.error.HTTPError as error:
        raise RefusedError(f"{request.full_url} answered {error.code}: {error.read()[:200].decode(errors='replace')}") from error
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        raise RefusedError(f"{request.full_url} did not answer: {error}") from error
    return found if isinstance(found, dict) else {}
