"""Actions on a bookie's admin port (BookKeeper 4.18, httpServerPort). Each is counted.

The port is in plain text. So the token is never sent, but a proof that the sender knows it, for one order: images/bookkeeper's
GuardedHttpServer checks it against a challenge, which each of its answers has, and which a proven order uses up.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
from urllib.parse import urlsplit

from herdkeeper.clients.bounded_http import Answer, Question, ask
from herdkeeper.clients.counters import WRITES
from herdkeeper.clients.kubernetes_writer import RefusedError
from herdkeeper.clients.look import require_time
from herdkeeper.shared import names

ANSWER_SECONDS = 10.0
"""The bookie answers after the change is durable on its disks and in ZooKeeper."""
_CHALLENGE = "herdkeeper-challenge"


class BookieAdmin:
    """Requests to a bookie."""

    def set_read_only(self, bookie_id: str, host: str, read_only: bool, token: str) -> None:
        """Change the mode and verify the change: a success code proves nothing, business errors come with any code. Raises RefusedError, or
        TimeoutError once the reconcile took too long: several bookies may be silent.
        """
        require_time()
        url = f"http://{host}:{names.BOOKIE_ADMIN_PORT}/api/v1/bookie/state/readonly"
        order(url, bookie_id, json.dumps({"readOnly": read_only}).encode(), token)
        found = _read_only(_ask(Question("GET", url, ANSWER_SECONDS, {})))
        if found is not read_only:
            raise RefusedError(f"{bookie_id} reports readOnly {found} after it was set to {read_only}")
        WRITES.labels("put", "Bookie").inc()


def order(url: str, bookie_id: str, body: bytes, token: str) -> None:
    """PUT to a bookie's admin port. One of an earlier image gives no challenge and asks for no proof. Raises RefusedError, also if another
    bookie's challenge is answered: it would take the order.
    """
    challenge = _ask(Question("GET", url, ANSWER_SECONDS, {})).headers.get(_CHALLENGE)
    if challenge is not None and challenge.rpartition("/")[0] != bookie_id:
        raise RefusedError(f"{url} answered with the challenge of {challenge.rpartition('/')[0][:100]!r}, not of {bookie_id}")
    text = f"{challenge}\nPUT {urlsplit(url).path}\n".encode() + body
    proof = {"Authorization": f"HMAC-SHA256 {hmac.new(token.encode(), text, hashlib.sha256).hexdigest()}"}
    _ask(Question("PUT", url, ANSWER_SECONDS, {} if challenge is None else proof, body))


def _read_only(answer: Answer) -> object:
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return found.get("readOnly") if isinstance(found, dict) else None


def _ask(question: Question) -> Answer:
    try:
        answer = ask(question)
    except (http.client.HTTPException, OSError, ValueError) as error:
        raise RefusedError(f"{question.url} did not answer: {error}") from error
    if answer.status != http.client.OK:
        raise RefusedError(f"{question.url} answered {answer.status}: {answer.body[:200].decode(errors='replace')}")
    return answer
