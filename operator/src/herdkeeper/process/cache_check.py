"""Compares the cache with lists of the API server: before the workers begin, and then each `resync_seconds`.

A watch may end silently (nolar/kopf#1276), and a deletion between two watches gives no event. The check handles a difference as an event
would. Observations read a kind from the cache only while the last check found it complete.

An API server whose data was restored from a backup gives lower resource versions: of lists or, if its revision was raised with the restore,
only of objects. The cache would never take them, so the process must be restarted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from herdkeeper.clients.counters import WATCH_BEHIND
from herdkeeper.clients.kubernetes import LiveSource
from herdkeeper.clients.object_cache import Difference, ObjectCache
from herdkeeper.process.watched_kinds import WATCHED_KINDS, WatchedKind
from herdkeeper.settings import Settings
from herdkeeper.shared.names import ObjectKey

LATE_SECONDS = 60.0
"""How long a round of checks waits for watches that are behind; longer if they catch up, since a new watch reports all objects."""
POLL_SECONDS = 0.5
"""Interval for comparing a kind whose watch is behind: each comparison reads all of its objects."""
AGAIN_SECONDS = 60.0
"""How soon a kind is checked again after it was behind or could not be listed."""
DEAD_AFTER_CHECKS = 3
"""A watch that is behind in this many checks in a row counts as dead."""

logger = structlog.get_logger()


class CacheCheck:
    """Compares the cache with lists. `on_event` handles an event of a kind, as from a watch."""

    def __init__(
        self, settings: Settings, lister: LiveSource, cache: ObjectCache, on_event: Callable[[WatchedKind, Mapping[str, Any]], None]
    ) -> None:
        self._settings = settings
        self._lister = lister
        self._cache = cache
        self._on_event = on_event
        self._behind = dict.fromkeys(WATCHED_KINDS, 0)
        self._listed_at = dict.fromkeys(WATCHED_KINDS, 0)
        self._restored: set[str] = set()
        self._stop = threading.Event()

    def start(self, then: Callable[[], None]) -> None:
        """Start a thread that checks, and calls `then` after the first check."""
        threading.Thread(target=self._run, args=(then,), name="cache-check", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def trouble(self) -> str | None:
        """Returns why the process must be restarted, or None: watches seem to be dead, or the API server's data was restored."""
        if self._restored:
            kinds = ", ".join(sorted(self._restored))
            return f"the API server gives lower resource versions than before, as after a restore of its data: {kinds}"
        dead = [kind.plural for kind, count in self._behind.items() if count >= DEAD_AFTER_CHECKS]
        return f"no watch events for: {', '.join(dead)}" if dead else None

    def once(self) -> bool:
        """Check each kind once. Returns whether all of them are complete."""
        deadline = time.monotonic() + LATE_SECONDS
        complete = [self._check(kind, deadline) for kind in WATCHED_KINDS if not self._stop.is_set()]
        return all(complete)

    def _run(self, then: Callable[[], None]) -> None:
        complete = self.once()
        then()
        while not self._stop.wait(self._settings.resync_seconds if complete else min(AGAIN_SECONDS, self._settings.resync_seconds)):
            complete = self.once()

    def _check(self, kind: WatchedKind, deadline: float) -> bool:
        """Returns whether a kind is complete, and records it in the cache."""
        namespaces = self._settings.watch_namespaces
        listed: dict[ObjectKey, int] = {}
        version = 0
        try:
            for namespace in namespaces or (None,):
                found, at = self._lister.versions(kind.api_version, kind.kind, namespace, kind.selector)
                listed |= found
                # an object that the first list lacks may be older than the last list, but newer than the first
                version = at if version == 0 else min(version, at)
            lower = version < self._listed_at[kind]
            self._listed_at[kind] = max(version, self._listed_at[kind])
            difference = Difference() if lower else self._when_caught_up(kind, listed, version, deadline)
            if lower or difference.older:
                self._restored.add(kind.plural)
                self._cache.set_complete(kind.kind, False)
                return False
            self._handle_missed(kind, difference, version)
        except (ApiException, HTTPError) as error:
            logger.warning("objects can't be listed", kind=kind.kind, error=str(error)[:200])
            self._cache.set_complete(kind.kind, False)
            return False
        except Exception:  # the workers wait for the first check, and trust the cache after each
            logger.exception("a kind can't be checked", kind=kind.kind)
            self._cache.set_complete(kind.kind, False)
            return False
        self._behind[kind] = self._behind[kind] + 1 if difference.behind else 0
        self._cache.set_complete(kind.kind, not difference.behind)
        return not difference.behind

    def _when_caught_up(self, kind: WatchedKind, listed: Mapping[ObjectKey, int], version: int, deadline: float) -> Difference:
        """Returns how the cache differs once the watches have reported all listed objects, or report nothing more."""
        behind = 0
        while True:
            difference = self._cache.compare(kind.kind, self._settings.watch_namespaces, listed, version)
            if len(difference.behind) < behind:
                deadline = max(deadline, time.monotonic() + LATE_SECONDS)
            behind = len(difference.behind)
            if not behind or time.monotonic() > deadline or self._stop.wait(POLL_SECONDS):
                return difference

    def _handle_missed(self, kind: WatchedKind, difference: Difference, version: int) -> None:
        """Read what no watch has reported, and handle it as an event."""
        if difference:
            WATCH_BEHIND.labels(kind.kind).inc(len(difference.behind) + len(difference.gone))
            logger.warning("no watch event for changes", kind=kind.kind, behind=len(difference.behind), gone=len(difference.gone))
        for key in difference.behind:
            document = self._lister.get(kind.api_version, kind.kind, key)
            if document is not None:
                self._on_event(kind, {"type": "MODIFIED", "object": document})
        for key in difference.gone:
            last = self._cache.get(kind.kind, key)
            if last is not None and int(last["metadata"]["resourceVersion"]) <= version:  # else it was made anew meanwhile
                last["metadata"]["resourceVersion"] = str(version)
                self._on_event(kind, {"type": "DELETED", "object": last})
