"""GET of JSON documents from the servers' admin ports."""

from __future__ import annotations

import http.client
import json
from typing import Any

from herdkeeper.clients.bounded_http import Question, Trust, ask
from herdkeeper.shared.unknown import NotListening, Unknown

ANSWER_SECONDS = 3.0
MOST_VALUES = 250_000
"""In a document. A view of 10,000 tables has 100,000; in memory an empty list takes twenty times its text."""


def document_of(body: bytes) -> Any:
    """Returns the decoded JSON. Raises ValueError, also for too many values, or RecursionError."""
    if body.count(b"[") + body.count(b"{") + body.count(b",") > MOST_VALUES:
        raise ValueError(f"its document has more than {MOST_VALUES} values")
    return json.loads(body)


class JsonReader:
    """Reads JSON over HTTP."""

    def get(self, url: str, trust: Trust | None = None) -> Any | Unknown:
        """Returns the decoded document. Unknown without an answer, a success or valid JSON. `trust` as in Question."""
        try:
            answer = ask(Question("GET", url, ANSWER_SECONDS, {}, trust=trust))
            return document_of(answer.body) if answer.status == http.client.OK else Unknown(f"{url} answered {answer.status}")
        except ConnectionRefusedError as error:
            return NotListening(f"{url} did not answer: {error}")
        except (http.client.HTTPException, OSError, ValueError, RecursionError) as error:
            return Unknown(f"{url} did not answer: {error}")
