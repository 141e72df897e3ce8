"""A Prometheus metric: name, type, labels and meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Type = Literal["counter", "gauge", "histogram", "summary"]
_SERIES: dict[Type, tuple[str, ...]] = {
    "counter": ("",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
    "summary": ("", "_sum", "_count"),
}


@dataclass(frozen=True)
class Metric:
    """A metric. `name` is as in queries, a counter's with `_total`. `labels` are the program's own, without the target's, such as the pod,
    and without `le` and `quantile`.
    """

    name: str
    type: Type
    labels: tuple[str, ...]
    meaning: str

    @property
    def series(self) -> tuple[str, ...]:
        """Returns the names of its stored series."""
        return tuple(f"{self.name}{ending}" for ending in _SERIES[self.type])
