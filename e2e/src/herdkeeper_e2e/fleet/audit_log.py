"""The requests of the operator, out of the API server's audit log: all of them, with the API server's own times."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from herdkeeper_e2e.control_plane import OPERATOR_USER

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "omitManagedFields": True,
    "rules": [{"level": "Metadata", "users": [OPERATOR_USER]}, {"level": "None"}],
}
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
NO_WRITES = frozenset({"leases", "events"})
"""Who leads is written each two seconds; events are news, not state."""


@dataclass(frozen=True, slots=True)
class Request:
    """One that was answered, or a watch that began, `at` so many seconds since 1970. `namespace` is empty for all of them."""

    at: float
    verb: str
    resource: str
    namespace: str
    code: int

    @property
    def writes(self) -> bool:
        """Whether it changed an object of a stack."""
        return self.verb in WRITES and self.resource not in NO_WRITES and self.code < 400


@dataclass
class AuditLog:
    """What the file tells. `last_write` is when each namespace was written to last."""

    file: Path
    last_write: dict[str, float] = field(default_factory=dict)
    _requests: list[Request] = field(default_factory=list)
    _offset: int = 0
    _rest: bytes = b""

    def read(self) -> None:
        """Take up what has come since it was read last."""
        if not self.file.exists():
            return
        with self.file.open("rb") as log:
            log.seek(self._offset)
            data = log.read()
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for request in requests_of(lines):
            self._requests.append(request)
            if request.writes:
                self.last_write[request.namespace] = request.at

    def since(self, begin: float, end: float) -> list[Request]:
        """The requests between two moments, in seconds since 1970."""
        self.read()
        return [request for request in self._requests if begin <= request.at < end]


def requests_of(lines: Iterable[bytes]) -> Iterator[Request]:
    """The requests in lines of the log. A watch counts when it begins, anything else when it is answered."""
    for line in lines:
        event: dict[str, Any] = json.loads(line)
        if event["stage"] == ("ResponseStarted" if event["verb"] == "watch" else "ResponseComplete"):
            what = event.get("objectRef") or {}
            named = (what.get("resource"), what.get("subresource"))
            resource = "/".join(filter(None, named)) or "discovery"
            at = datetime.datetime.fromisoformat(event["stageTimestamp"]).timestamp()
            yield Request(at, event["verb"], resource, what.get("namespace") or "", int(event.get("responseStatus", {}).get("code", 0)))
