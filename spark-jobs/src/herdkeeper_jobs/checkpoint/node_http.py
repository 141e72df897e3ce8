"""HTTP requests to SQL nodes: the leader's log position and row counts, a follower's digest at an LSN, and its tables.

Formats: images/herddb, NodeEndpoints and CopyOrders.
"""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import IO

from herdkeeper.codecs.authorities import client_context
from herdkeeper.codecs.herddb.row_digest import RowDigest
from herdkeeper_jobs.checkpoint.follower_stream import Part, read_stream
from herdkeeper_jobs.errors import CheckpointRefused, CheckpointRetryable
from herdkeeper_jobs.wal.lsn import Lsn

_CALL_SECONDS = 30.0
_TOKEN_HINT = "HERDDB_TOKEN must be the key `token` of the cluster's credentials Secret"  # noqa: S105 - names it
_MOST_REASON = 1000
"""Bytes of a refusal that are read."""
_MOST_ANSWER = 16 << 20
"""Bytes of a JSON document that are read."""
_NO_ANSWER = (OSError, ValueError, RecursionError, http.client.HTTPException)
_SCAN_SECONDS = 3600
"""Longest scan of a held follower's tables: the default deadline of a job (`job.deadlineSeconds`)."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirects: urllib would send the token to the new address."""

    def redirect_request(self, *_: object) -> None:
        """Returns None, so that a redirect is an error (see HTTPRedirectHandler)."""


class TlsAddress(str):
    """host:port of a node that speaks TLS, and the authorities (PEM certificates) that verify it as this host. Other addresses are spoken
    to in plain text.
    """

    __slots__ = ("authorities",)
    authorities: str

    def __new__(cls, address: str, authorities: str) -> TlsAddress:
        made = super().__new__(cls, address)
        made.authorities = authorities
        return made

    def __reduce__(self) -> tuple[type[TlsAddress], tuple[str, str]]:
        """Returns how a copy is made, also a pickled one for an executor."""
        return TlsAddress, (str(self), self.authorities)


@dataclass(frozen=True, slots=True)
class FollowerDigest:
    """A follower's tables right after an LSN."""

    lsn: Lsn
    tables: Mapping[str, RowDigest]
    node: str


@dataclass(frozen=True, slots=True)
class NotHeld:
    """The follower could not be held at the LSN. `position` is its position, None if not reported."""

    reason: str
    position: Lsn | None


@dataclass(frozen=True, slots=True)
class LeaderCounts:
    """The leader's committed rows per table right after `lsn`; only its idle NOOPs may follow."""

    node: str
    lsn: Lsn
    tables: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NotCounted:
    """Why the leader's row counts are unknown."""

    reason: str


def leader_counts(address: str, tablespace: str) -> LeaderCounts | NotCounted:
    """Asks the node at `host:port` for its row counts of a tablespace that it leads, also by the metadata. A replaced leader that does not
    know it yet lacks its successor's rows. Raises CheckpointRetryable if there is no answer."""
    _, body = _call(address, "/tablespaces", "GET", _CALL_SECONDS)
    with _reading(address):
        found = [item for item in body if item["name"] == tablespace.lower()] if isinstance(body, list) else []
        if not found or found[0].get("role") != "leader" or not found[0].get("ready"):
            return NotCounted(f"the node {address} does not lead it")
        counts = found[0].get("counts")
        if counts is None:
            return NotCounted(f"the node {address} reports no row counts of its tables")
        if not counts["exact"]:
            return NotCounted(f"the node {address} was written to while it counted")
        return LeaderCounts(address, _position(counts["position"]), {str(table): int(rows) for table, rows in counts["tables"].items()})


def log_position(address: str, tablespace: str) -> Lsn:
    """Returns the last entry of the tablespace's log that the node at `host:port` has applied: of a leader, the last acknowledged. Raises
    CheckpointRetryable.
    """
    status, body = _call(address, "/tablespaces", "GET", _CALL_SECONDS)
    with _reading(address):
        found = [item for item in body if item["name"] == tablespace.lower()] if status == 200 and isinstance(body, list) else []
        if not found or found[0]["applied"] is None:
            raise CheckpointRetryable(f"the node {address} does not report a log position of tablespace {tablespace!r} (status {status})")
        return _position(found[0]["applied"])


def follower_digest(address: str, tablespace: str, lsn: Lsn, token: str, timeout_seconds: int) -> FollowerDigest | NotHeld:
    """Holds the follower at `host:port` at an LSN and digests its tables. It must reach the LSN in time; the digest takes time by the
    tables' size.

    Raises:
        CheckpointRefused: it rejects the token.
        CheckpointRetryable: it does not answer.
    """
    name = urllib.parse.quote(tablespace.lower())
    limits = {"timeoutSeconds": timeout_seconds, "scanSeconds": _SCAN_SECONDS}
    query = urllib.parse.urlencode({"ledger": lsn.ledger_id, "entry": lsn.entry_id, **limits})
    path = f"/tablespaces/{name}/digest?{query}"
    status, body = _call(address, path, "POST", timeout_seconds + _SCAN_SECONDS + _CALL_SECONDS, token)
    if status == HTTPStatus.UNAUTHORIZED:
        raise CheckpointRefused(f"the node {address} answered {status} to a request for a digest; {_TOKEN_HINT}")
    if not isinstance(body, dict):
        raise CheckpointRetryable(f"the node {address} answered {status} to a request for a digest, and no JSON object")
    with _reading(address):
        if status == 200:
            tables = {table: RowDigest.parse(item["rows"], item["digest"]) for table, item in body["tables"].items()}
            return FollowerDigest(Lsn(int(body["ledger"]), int(body["entry"])), tables, address)
        position = body.get("position")
        return NotHeld(f"the node {address} answered {status}: {body.get('error', body)}", _position(position) if position else None)


def follower_tables(address: str, tablespace: str, token: str, timeout_seconds: int) -> Iterator[Part]:
    """Streams the tables of the follower at `host:port`. It is held meanwhile, at a position without open transactions that it must reach
    in time.

    Raises:
        CheckpointRefused: it rejects the token.
        CheckpointRetryable: it can't be held, leads by now, does not answer, or the stream is not whole.
    """
    name = urllib.parse.quote(tablespace.lower())
    query = urllib.parse.urlencode({"timeoutSeconds": timeout_seconds, "scanSeconds": _SCAN_SECONDS})
    try:
        with _opened(address, f"/tablespaces/{name}/tables?{query}", "POST", timeout_seconds + _CALL_SECONDS, token) as answer:
            yield from read_stream(answer)
    except urllib.error.HTTPError as error:
        reply = f"the node {address} answered {error.code} to a request for its tables: {error.read(_MOST_REASON).decode(errors='replace')}"
        if error.code == HTTPStatus.UNAUTHORIZED:
            raise CheckpointRefused(f"{reply}; {_TOKEN_HINT}") from error
        raise CheckpointRetryable(reply) from error
    except (OSError, http.client.HTTPException) as error:
        raise CheckpointRetryable(f"the node {address} did not give its tables: {error}") from error


def _position(body: Mapping[str, int]) -> Lsn:
    return Lsn(int(body["ledgerId"]), int(body["entryId"]))


@contextmanager
def _reading(address: str) -> Iterator[None]:
    """An answer of another form is no answer."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CheckpointRetryable(f"the node {address} gave an answer of another form: {error!r}") from error


def _opened(address: str, path: str, method: str, timeout_seconds: float, token: str) -> http.client.HTTPResponse:
    """Returns a successful answer, yet to be read. Raises OSError, also for a node that can't be verified, which is sent nothing."""
    handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
    if isinstance(address, TlsAddress):
        handlers.append(urllib.request.HTTPSHandler(context=client_context(address.authorities, ssl.TLSVersion.TLSv1_3)))
    url = f"https://{address}{path}" if isinstance(address, TlsAddress) else f"http://{address}{path}"
    authorization = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, method=method, headers=authorization)  # noqa: S310 - one of these two schemes
    answer: http.client.HTTPResponse = urllib.request.build_opener(*handlers).open(request, timeout=timeout_seconds)
    return answer


def _call(address: str, path: str, method: str, timeout_seconds: float, token: str = "") -> tuple[int, object]:
    try:
        with _opened(address, path, method, timeout_seconds, token) as answer:
            return answer.status, _document(answer)
    except urllib.error.HTTPError as error:
        try:
            return error.code, _document(error)
        except _NO_ANSWER:
            return error.code, None
    except _NO_ANSWER as error:
        raise CheckpointRetryable(f"the node {address} did not answer {method} {path}: {error}") from error


def _document(answer: IO[bytes]) -> object:
    content = answer.read(_MOST_ANSWER + 1)
    if len(content) > _MOST_ANSWER:
        raise ValueError(f"the answer is larger than {_MOST_ANSWER} bytes")
    return json.loads(content)
