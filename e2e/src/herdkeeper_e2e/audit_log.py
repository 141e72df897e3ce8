"""The requests of the operator, or of a Spark driver, out of the API server's audit log: all of them, with the API server's own times.

Which requests are logged, e2e/kind/audit-policy.yaml says. Source: Kubernetes, "Auditing".
"""

from __future__ import annotations

import datetime
import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from herdkeeper_e2e.control_plane import OPERATOR_USER

CACHE = "HERDKEEPER_CACHE"
"""Variable with the project's cache folder, from e2e/bootstrap/run.sh."""
MOST_KEPT = 100
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
NO_WRITES = frozenset({"leases", "events"})
"""Who leads is written each two seconds; events are news, not state."""


@dataclass(frozen=True, slots=True)
class Request:
    """One that was answered, or a watch that began, `at` so many seconds since 1970. `namespace` is empty for all of them.

    `group` is that of the API, empty for the core group. `forbidden`: no rule of RBAC allows it.
    """

    at: float
    verb: str
    resource: str
    namespace: str
    code: int
    group: str = ""
    forbidden: bool = False

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


def requests_of(lines: Iterable[bytes], user: str = OPERATOR_USER) -> Iterator[Request]:
    """A user's requests in lines of the log. A watch counts when it begins, anything else when it is answered."""
    for line in lines:
        event: dict[str, Any] = json.loads(line)
        if event["user"]["username"] != user:
            continue
        if event["stage"] == ("ResponseStarted" if event["verb"] == "watch" else "ResponseComplete"):
            what = event.get("objectRef") or {}
            named = (what.get("resource"), what.get("subresource"))
            resource = "/".join(filter(None, named)) or "discovery"
            at = datetime.datetime.fromisoformat(event["stageTimestamp"]).timestamp()
            code = int(event.get("responseStatus", {}).get("code", 0))
            forbidden = event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
            yield Request(at, event["verb"], resource, what.get("namespace") or "", code, what.get("apiGroup") or "", forbidden)


def distinct(lines: Iterable[bytes], since: float = 0.0) -> Iterator[bytes]:
    """The first line of each kind of request: who asks the same again, and is answered the same, tells nothing new of its rights. A last
    line without its end is still being written, and left out."""
    seen: set[tuple[object, ...]] = set()
    for line in lines:
        if not line.endswith(b"\n"):
            return
        for request in requests_of([line]):
            kind = (request.verb, request.group, request.resource, request.code, request.forbidden)
            if request.at >= since and kind not in seen:
                seen.add(kind)
                yield line


def keep(lines: Iterable[bytes], name: str, since: float = 0.0) -> Path | None:
    """Keep what is distinct of a log since a moment, in the cache folder: the file, or None without that folder or any request.

    Of the files there the newest stay.
    """
    kept = b"".join(distinct(lines, since))
    if not kept or CACHE not in os.environ:
        return None
    folder = kept_in(Path(os.environ[CACHE]))
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{name}.jsonl"
    file.write_bytes(kept)
    for old in sorted(folder.glob("*.jsonl"))[:-MOST_KEPT]:
        old.unlink(missing_ok=True)
    return file


def kept_in(cache: Path) -> Path:
    """The folder of kept logs."""
    return cache / "audit-logs"
