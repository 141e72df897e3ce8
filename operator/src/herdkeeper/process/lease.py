"""Leadership by a coordination.k8s.io Lease: 15 s long, renewed every 2 s, given up 5 s before it would end for others.

The scheme of client-go's leaderelection: only locally measured times count, since clocks of machines differ.
"""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog
from kubernetes.client import ApiException
from kubernetes.dynamic import DynamicClient
from urllib3.exceptions import HTTPError

from herdkeeper.shared import names

NAME = names.LEASE
DURATION_SECONDS = 15.0
RENEW_DEADLINE_SECONDS = 10.0
RETRY_SECONDS = 2.0
CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Counts the time for which the machine slept, too. Others lead meanwhile."""

logger = structlog.get_logger()


@dataclass(frozen=True)
class _Seen:
    """A holder's last renewal and when this process first saw it (seconds of `CLOCK`)."""

    holder: str
    renewed: str
    at: float


class Lease:
    """One candidate for the leadership. `lost` is called, once, when a leader could not renew in time."""

    def __init__(self, client: DynamicClient, namespace: str, identity: str, lost: Callable[[], None]) -> None:
        self._client = client
        self._namespace = namespace
        self._identity = identity
        self._lost = lost
        self._seen: _Seen | None = None
        self._renewed_at: float | None = None
        self._stop = threading.Event()
        self._renewal: threading.Thread | None = None

    def held(self) -> bool:
        """Whether no other process can have taken the leadership yet."""
        return self._renewed_at is not None and _now() - self._renewed_at < RENEW_DEADLINE_SECONDS

    def acquire(self) -> bool:
        """Wait until this process leads, then keep renewing in a thread. False when it was stopped before."""
        logger.info("waiting for the Lease", lease=f"{self._namespace}/{NAME}", identity=self._identity)
        while not self._stop.is_set():
            if self._try():
                logger.info("leading", identity=self._identity)
                self._renewal = threading.Thread(target=self._renew, name="lease", daemon=True)
                self._renewal.start()
                threading.Thread(target=self._watch, name="lease-watch", daemon=True).start()
                return True
            self._stop.wait(RETRY_SECONDS)
        return False

    def give_up(self) -> None:
        """Stop waiting for the leadership."""
        self._stop.set()

    def release(self) -> None:
        """Stop renewing, and let another process lead at once."""
        self._stop.set()
        if self._renewal is not None:
            self._renewal.join(RENEW_DEADLINE_SECONDS)  # its last renewal would be a conflict for the release, or undo it
        if not self.held():
            return
        self._renewed_at = None
        try:
            found = self._read()
            if found is not None and found["spec"].get("holderIdentity") == self._identity:
                found["spec"]["holderIdentity"] = ""
                self._client.request("put", self._path(), body=found, _request_timeout=_patience())
        except (ApiException, HTTPError):
            logger.warning("the Lease could not be released; it ends by itself")

    def _renew(self) -> None:
        # a leader that was paused beyond its time does not go on: others may have led meanwhile
        while not self._stop.wait(RETRY_SECONDS) and self.held():
            self._try()

    def _watch(self) -> None:
        """Beside the renewal: a request that hangs must not put off the moment at which the loss is told."""
        while not self._stop.wait(RETRY_SECONDS / 4):
            if not self.held():
                logger.error("the Lease was lost")
                self._lost()
                return

    def _try(self) -> bool:
        begun = _now()
        try:
            acquired = self._take_or_renew(begun)
        except (ApiException, HTTPError) as error:
            logger.warning("the Lease can't be renewed", error=str(error)[:200])
            return False
        if acquired:
            self._renewed_at = begun
        return acquired

    def _take_or_renew(self, begun: float) -> bool:
        found = self._read()
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        if found is None and self._may_be_held_by_another(begun):
            return False  # somebody deleted it: its holder makes it again
        if found is None:
            return self._write("post", {"metadata": {"name": NAME, "namespace": self._namespace}, "spec": {}}, now)
        spec = found.get("spec") or {}
        holder, renewed = str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or "")
        if holder not in ("", self._identity) and not self._is_over(holder, renewed, begun):
            self._renewed_at = None  # a leader from which another process took it must not act until its own time is over
            return False
        return self._write("put", found, now)

    def _is_over(self, holder: str, renewed: str, now: float) -> bool:
        """Whether another's Lease stood still for its whole duration, by this process's own clock."""
        if self._seen is None or (self._seen.holder, self._seen.renewed) != (holder, renewed):
            self._seen = _Seen(holder, renewed, _now())  # after the read: the renewal may have come while it lasted
        return now - self._seen.at > DURATION_SECONDS

    def _may_be_held_by_another(self, now: float) -> bool:
        """Whether another process that does not know of the Lease's deletion may still lead."""
        return not self.held() and self._seen is not None and now - self._seen.at <= DURATION_SECONDS

    def _write(self, verb: str, lease: dict[str, Any], now: str) -> bool:
        spec = lease.get("spec") or {}
        changed = spec.get("holderIdentity") != self._identity
        spec |= {"holderIdentity": self._identity, "leaseDurationSeconds": int(DURATION_SECONDS), "renewTime": now}
        if changed:
            spec |= {"acquireTime": now, "leaseTransitions": int(spec.get("leaseTransitions") or 0) + 1}
        body = {**lease, "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec}
        try:
            self._client.request(verb, self._path(one=verb == "put"), body=body, _request_timeout=_patience())
        except ApiException as error:
            if error.status == 409:  # another candidate was quicker: the resourceVersion that was read is no more
                return False
            raise
        return True

    def _read(self) -> dict[str, Any] | None:
        try:
            return dict(self._client.request("get", self._path(), _request_timeout=_patience()).to_dict())
        except ApiException as error:
            if error.status == 404:
                return None
            raise

    def _path(self, *, one: bool = True) -> str:
        collection = f"/apis/coordination.k8s.io/v1/namespaces/{self._namespace}/leases"
        return f"{collection}/{NAME}" if one else collection


def _now() -> float:
    return time.clock_gettime(CLOCK)


def _patience() -> tuple[float, float]:
    """Seconds for a connection and for an answer. A pair: the client of Kubernetes ignores a single number that is not an int."""
    return RETRY_SECONDS, RETRY_SECONDS * 2
