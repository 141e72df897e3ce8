"""Which resources are requeued when one changes: itself, those that refer to it directly, the one that it refers to, and those with its
SQL name.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from typing import Any

from herdkeeper.api import Tablespace
from herdkeeper.api.tablespace import sql_name_of
from herdkeeper.engine.key import Key
from herdkeeper.engine.kinds import KIND_OF
from herdkeeper.shared import names
from herdkeeper.shared.references import REFERENCES, referred_name


class References:
    """Which resource refers to which, by the watches. It decides only what is requeued: a plan reads everything again."""

    def __init__(self) -> None:
        self._refers: dict[Key, Key] = {}
        self._dependents: dict[Key, set[Key]] = {}
        self._known: dict[str, set[Key]] = {}
        """By namespace."""
        self._sql_names: dict[Key, str] = {}
        """Of Tablespaces."""
        self._lock = threading.Lock()

    def seen(self, key: Key, spec: Mapping[str, Any]) -> None:
        """Record a resource that exists, with this spec."""
        name = referred_name(key.kind, spec)
        with self._lock:
            self._known.setdefault(key.namespace, set()).add(key)
            if key.kind == Tablespace.KIND:
                self._sql_names[key] = sql_name_of(key.name, spec.get("tablespaceName"))
            self._refer(key, None if name is None else Key(REFERENCES[key.kind][1], key.namespace, name))

    def gone(self, key: Key) -> None:
        """Remove a resource that no longer exists."""
        with self._lock:
            self._known.get(key.namespace, set()).discard(key)
            if not self._known.get(key.namespace):
                self._known.pop(key.namespace, None)
            self._sql_names.pop(key, None)
            self._refer(key, None)

    def _refer(self, key: Key, target: Key | None) -> None:
        before = self._refers.pop(key, None)
        if before is not None:
            self._dependents[before].discard(key)
            if not self._dependents[before]:
                del self._dependents[before]
        if target is not None:
            self._refers[key] = target
            self._dependents.setdefault(target, set()).add(key)

    def stacks_of(self, key: Key) -> frozenset[Hashable]:
        """Returns the stack of a cluster, by the resource at its bottom.

        A cluster that no watch has reported yet may belong to any stack of its namespace, even to one that is unknown so far.
        """
        with self._lock:
            neighbours = self._known.get(key.namespace, set())
            if key in neighbours:
                return frozenset({self._root(key)})
            return frozenset({key.namespace, *map(self._root, neighbours)})

    def _root(self, key: Key) -> Key:
        target = self._refers.get(key)
        return key if target is None else self._root(target)

    def affected_by(self, key: Key) -> tuple[Key, ...]:
        """Returns the resource, those that refer to it, and the one that it refers to, whose deletion may wait for it."""
        with self._lock:
            dependents = sorted(self._dependents.get(key, ()), key=str)
            target = self._refers.get(key)
        return (key, *dependents, *((target,) if target else ()))

    def namesakes(self, key: Key) -> tuple[Key, ...]:
        """Returns the other Tablespaces of a database that declare the same SQL name: they may be refused for it."""
        with self._lock:
            name, target = self._sql_names.get(key), self._refers.get(key)
            beside = set() if name is None or target is None else self._dependents[target] - {key}
            return tuple(sorted((other for other in beside if self._sql_names.get(other) == name), key=str))


def owner_of(document: Mapping[str, Any]) -> Key | None:
    """Returns the resource for which an object was made, by its labels. None for an object of somebody else."""
    metadata = document["metadata"]
    labels = metadata.get("labels") or {}
    kind, name = labels.get(names.OWNER_KIND_LABEL), labels.get(names.OWNER_NAME_LABEL)
    return Key(str(kind), metadata["namespace"], str(name)) if kind in KIND_OF and name else None
