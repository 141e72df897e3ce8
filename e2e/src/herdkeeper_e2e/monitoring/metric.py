"""A metric as Prometheus has it: its name, type, labels and meaning."""

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
    """`name` is the one that a query has, a counter's with its `_total`. `labels` are the program's own: those of the target, such as the
    pod, and `le` or `quantile` come on top."""

    name: str
    type: Type
    labels: tuple[str, ...]
    meaning: str

    @property
    def series(self) -> tuple[str, ...]:
        """The names of what is stored of it."""
        return tuple(f"{self.name}{ending}" for ending in _SERIES[self.type])
