"""Kubernetes objects as the watches reported them. Observations read these instead of the API server.

Each object is stored as JSON text: no reader can change another reader's object, and text takes a tenth of the memory of dictionaries.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.objects import Json

_INDEXED_LABELS = (names.OWNER_NAME_LABEL, names.INSTANCE_LABEL)
DELETED_IS_KNOWN_SECONDS = 600.0
"""How long a deletion is remembered, so that a late event does not bring the object back."""
RECENT_SECONDS = 300.0
"""How long a read of an unwatched object is reused, for readers that accept an older one."""
MOST_RECENT_CHARACTERS = 32 << 20
"""Of all reads that are kept, as JSON. Resources may name new Secrets, of a megabyte each, as often as their authors like."""


_Index = tuple[str, ...]
"""A kind, a kind in a namespace, or a kind in a namespace with a label and its value."""


@dataclass(frozen=True)
class _Entry:
    version: int
    labels: Mapping[str, str]
    text: str


@dataclass(frozen=True)
class _Recent:
    found: Json | None
    at: float
    characters: int


@dataclass(frozen=True)
class Difference:
    """How the cache differs from the API server's list: `behind` are missing or outdated in the cache, `gone` exist only there. `older` are
    listed in an older version than the cache had when the list was made: the API server's data was restored.
    """

    behind: tuple[ObjectKey, ...] = ()
    gone: tuple[ObjectKey, ...] = ()
    older: tuple[ObjectKey, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.behind or self.gone)


class ObjectCache:
    """Objects by kind, namespace and name. An older version never replaces a newer one: resourceVersions of one resource are ordered
    (Kubernetes 1.35, KEP-5504). Any thread may use it.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._entries: dict[tuple[str, ObjectKey], _Entry] = {}
        self._index: dict[_Index, set[ObjectKey]] = {}
        self._deleted: dict[tuple[str, ObjectKey], tuple[int, float]] = {}
        self._complete: set[str] = set()
        self._recent: dict[tuple[str, ObjectKey], _Recent] = {}
        """The oldest first."""
        self._lock = threading.Lock()

    def put(self, document: Json) -> bool:
        """Store this version of an object. Returns whether it is newer than the known one."""
        place, version = _place(document), _version(document)
        with self._lock:
            known, deleted = self._entries.get(place), self._deleted.get(place)
            if (known is not None and known.version >= version) or (deleted is not None and deleted[0] >= version):
                return False
            self._remove(place)
            metadata = {name: value for name, value in document["metadata"].items() if name != "managedFields"}
            labels = {sys.intern(name): sys.intern(value) for name, value in (metadata.get("labels") or {}).items()}
            entry = _Entry(version, labels, json.dumps({**document, "metadata": metadata}, separators=(",", ":")))
            self._entries[place] = entry
            for index in _indexes(place, entry.labels):
                self._index.setdefault(index, set()).add(place[1])
            return True

    def drop(self, document: Json) -> None:
        """Remove a deleted object. The document is its last state."""
        place, version = _place(document), _version(document)
        with self._lock:
            known = self._entries.get(place)
            if known is not None and known.version > version:
                return
            self._remove(place)
            now = self._now()
            while self._deleted and now - next(iter(self._deleted.values()))[1] > DELETED_IS_KNOWN_SECONDS:
                del self._deleted[next(iter(self._deleted))]
            self._deleted.pop(place, None)  # so that the oldest deletion stays the first one
            self._deleted[place] = (version, now)

    def get(self, kind: str, key: ObjectKey) -> Json | None:
        with self._lock:
            entry = self._entries.get((kind, key))
        return None if entry is None else dict(json.loads(entry.text))

    def select(self, kind: str, namespace: str | None, labels: Mapping[str, str]) -> list[Json]:
        """Returns the objects of a kind with these labels, in a namespace or (None) in all, sorted by namespace and name."""
        with self._lock:
            found = [
                (key, entry.text)
                for key in self._candidates(kind, namespace, labels)
                if (entry := self._entries[(kind, key)]) and labels.items() <= entry.labels.items()
            ]
        return [json.loads(text) for _, text in sorted(found, key=lambda pair: (pair[0].namespace, pair[0].name))]

    def recent(self, kind: str, key: ObjectKey, read: Callable[[], Json | None]) -> Json | None:
        """Returns an unwatched object, read now unless it was read in the last RECENT_SECONDS. Callers must not change it."""
        with self._lock:
            known = self._recent.get((kind, key))
        if known is not None and self._now() - known.at < RECENT_SECONDS:
            return known.found
        found = read()
        with self._lock:
            self._keep((kind, key), found)
        return found

    def renew(self, kind: str, key: ObjectKey, found: Json | None) -> None:
        """Store a fresh read of an unwatched object for the callers of `recent`. Callers must not change it."""
        with self._lock:
            if (kind, key) in self._recent:
                self._keep((kind, key), found)

    def _keep(self, place: tuple[str, ObjectKey], found: Json | None) -> None:
        now = self._now()
        self._recent.pop(place, None)
        self._recent[place] = _Recent(found, now, len(json.dumps(found)))
        room = MOST_RECENT_CHARACTERS - sum(each.characters for each in self._recent.values())
        for eldest, each in list(self._recent.items()):
            if room >= 0 and now - each.at < RECENT_SECONDS:
                break
            room += each.characters
            del self._recent[eldest]

    def compare(self, kind: str, namespaces: Collection[str], listed: Mapping[ObjectKey, int], version: int) -> Difference:
        """Returns how the known objects of a kind differ from a list made at `version`. `namespaces` are the listed ones, empty for all."""
        with self._lock:
            found = (key for namespace in namespaces or (None,) for key in self._candidates(kind, namespace, {}))
            known = {key: self._entries[(kind, key)].version for key in found}
            deleted = {key: at for (other, key), (at, _) in self._deleted.items() if other == kind}
        latest = {key: max(known.get(key, -1), deleted.get(key, -1)) for key in listed}
        return Difference(
            behind=tuple(key for key, at in listed.items() if latest[key] < at),
            gone=tuple(key for key, at in known.items() if key not in listed and at <= version),
            older=tuple(key for key, at in listed.items() if at < latest[key] <= version),
        )

    def set_complete(self, kind: str, complete: bool) -> None:
        """Record whether all objects of a kind are known."""
        with self._lock:
            (self._complete.add if complete else self._complete.discard)(kind)

    def is_complete(self, kind: str) -> bool:
        """Returns whether observations may read a kind from the cache."""
        with self._lock:
            return kind in self._complete

    def _remove(self, place: tuple[str, ObjectKey]) -> None:
        entry = self._entries.pop(place, None)
        for index in () if entry is None else _indexes(place, entry.labels):
            self._index[index].discard(place[1])
            if not self._index[index]:
                del self._index[index]

    def _candidates(self, kind: str, namespace: str | None, labels: Mapping[str, str]) -> Iterable[ObjectKey]:
        if namespace is None:
            return self._index.get((kind,), ())
        for label in _INDEXED_LABELS:
            if label in labels:
                return self._index.get((kind, namespace, label, labels[label]), ())
        return self._index.get((kind, namespace), ())


def _place(document: Json) -> tuple[str, ObjectKey]:
    metadata = document["metadata"]
    return str(document["kind"]), ObjectKey(metadata.get("namespace", ""), metadata["name"])


def _version(document: Json) -> int:
    return int(document["metadata"]["resourceVersion"])


def _indexes(place: tuple[str, ObjectKey], labels: Mapping[str, str]) -> list[_Index]:
    kind, key = place
    return [(kind,), (kind, key.namespace), *((kind, key.namespace, label, labels[label]) for label in _INDEXED_LABELS if label in labels)]
