"""GET of JSON documents from the servers' admin ports."""

from __future__ import annotations

import http.client
import json
from typing import Any

from herdkeeper.clients.bounded_http import Question, Trust, ask
from herdkeeper.shared.unknown import NotListening, Unknown

ANSWER_SECONDS = 3.0


class JsonReader:
    """Reads JSON over HTTP."""

    def get(self, url: str, trust: Trust | None = None) -> Any | Unknown:
        """Returns the decoded document. Unknown without an answer, a success or valid JSON. `trust` as in Question."""
        try:
            answer = ask(Question("GET", url, ANSWER_SECONDS, {}, trust=trust))
            return json.loads(answer.body) if answer.status == http.client.OK else Unknown(f"{url} answered {answer.status}")
        except ConnectionRefusedError as error:
            return NotListening(f"{url} did not answer: {error}")
        except (http.client.HTTPException, OSError, ValueError, RecursionError) as error:
            return Unknown(f"{url} did not answer: {error}")
