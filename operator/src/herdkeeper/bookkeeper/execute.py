"""Actions on a bookie's admin port (BookKeeper 4.18, httpServerPort). Each is counted."""

from __future__ import annotations

import http.client
import json
from typing import Any

from herdkeeper.clients.bounded_http import Question, ask
from herdkeeper.clients.counters import WRITES
from herdkeeper.clients.kubernetes_writer import RefusedError
from herdkeeper.shared import names

ANSWER_SECONDS = 10.0
"""The bookie answers after the change is durable on its disks and in ZooKeeper."""


class BookieAdmin:
    """Requests to a bookie."""

    def set_read_only(self, bookie_id: str, host: str, read_only: bool) -> None:
        """Change the mode and verify the change: a success code proves nothing, business errors come with any code. Raises RefusedError."""
        url = f"http://{host}:{names.BOOKIE_ADMIN_PORT}/api/v1/bookie/state/readonly"
        _ask(Question("PUT", url, ANSWER_SECONDS, {}, json.dumps({"readOnly": read_only}).encode()))
        found = _ask(Question("GET", url, ANSWER_SECONDS, {}))
        if found.get("readOnly") is not read_only:
            raise RefusedError(f"{bookie_id} reports readOnly {found.get('readOnly')} after it was set to {read_only}")
        WRITES.labels("put", "Bookie").inc()


def _ask(question: Question) -> dict[str, Any]:
    try:
        answer = ask(question)
        if answer.status != http.client.OK:
            raise RefusedError(f"{question.url} answered {answer.status}: {answer.body[:200].decode(errors='replace')}")
        found = json.loads(answer.body)
    except (http.client.HTTPException, OSError, ValueError, RecursionError) as error:
        raise RefusedError(f"{question.url} did not answer: {error}") from error
    return found if isinstance(found, dict) else {}
