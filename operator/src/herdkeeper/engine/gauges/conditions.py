"""The gauge of the conditions of each resource."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import Gauge

CONDITION = Gauge(
    "herdkeeper_resource_condition",
    "A condition of a resource, with its reason: 1 when it is True, 0 when it is False, -1 when it is Unknown.",
    ["kind", "namespace", "name", "type", "reason"],
)
_VALUES = {"True": 1, "False": 0}


class Conditions:
    """The conditions that the gauge shows, each with its current reason. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shown: dict[tuple[str, str, str], frozenset[tuple[str, str]]] = {}

    def show(self, kind: str, namespace: str, name: str, conditions: Iterable[Mapping[str, Any]]) -> None:
        """Shows these conditions of a resource, and removes all others. Without any: removes those of a deleted resource."""
        resource = (kind, namespace, name)
        values = {(each["type"], each["reason"]): _VALUES.get(each["status"], -1) for each in conditions}
        with self._lock:
            for gone in self._shown.pop(resource, frozenset()) - values.keys():
                CONDITION.remove(*resource, *gone)
            for condition, value in values.items():
                CONDITION.labels(*resource, *condition).set(value)
            if values:
                self._shown[resource] = frozenset(values)


CONDITIONS = Conditions()
