"""GET of small JSON documents from the servers' admin ports."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any, Protocol

from herdkeeper.shared.unknown import NotListening, Unknown

ANSWER_SECONDS = 3.0


class JsonReader(Protocol):
    """Reads JSON by HTTP."""

    def get(self, url: str) -> Any | Unknown:
        """The decoded document; Unknown when there is no answer, no success or no JSON."""


class HttpJsonReader:
    """A JsonReader that asks the network."""

    def get(self, url: str) -> Any | Unknown:
        """See JsonReader."""
        try:
            with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as answer:  # noqa: S310 - the URLs are made here, all http
                return json.load(answer)
        except urllib.error.URLError as error:
            kind = NotListening if isinstance(error.reason, ConnectionRefusedError) else Unknown
            return kind(f"{url} did not answer: {error}")
        except (http.client.HTTPException, OSError, ValueError) as error:
            return Unknown(f"{url} did not answer: {error}")
