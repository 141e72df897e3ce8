"""The metrics of this project's programs, from their declarations: the operator's from its code, the node program's from its table."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

from herdkeeper.clients import counters
from herdkeeper.engine import gauges
from herdkeeper_e2e.monitoring.metric import Metric, Type

NODE_TABLE = Path(__file__).parents[4] / "images/herddb/src/main/resources/io/herdkeeper/node/http/metrics.properties"
_LINE = re.compile(r"(?P<name>herdkeeper_[a-z_]+)(?:\{(?P<labels>[a-z_,]+)\})?=(?P<meaning>.+)")
_TYPES: tuple[tuple[type[MetricWrapperBase], Type], ...] = ((Counter, "counter"), (Gauge, "gauge"), (Histogram, "histogram"))


def operators_metrics() -> tuple[Metric, ...]:
    """Returns the operator's, by name, without Python's own (`python_…`, `process_…`)."""
    modules = (counters, *(import_module(f"{gauges.__name__}.{module.name}") for module in pkgutil.iter_modules(gauges.__path__)))
    return tuple(sorted({metric for module in modules for metric in _declared_in(module)}, key=lambda metric: metric.name))


def _declared_in(module: ModuleType) -> Iterator[Metric]:
    for value in vars(module).values():
        if isinstance(value, MetricWrapperBase):
            (family, *_) = value.describe()
            kind = next(name for known, name in _TYPES if isinstance(value, known))
            ending = "_total" if kind == "counter" else ""
            # The labels of a metric without samples can't be read otherwise.
            yield Metric(family.name + ending, kind, tuple(value._labelnames), family.documentation)


def node_metrics() -> tuple[Metric, ...]:
    """Returns the node program's, by name. Raises ValueError for an invalid line of its table."""
    lines = [line for line in NODE_TABLE.read_text().splitlines() if line and not line.startswith("#")]
    return tuple(sorted(map(_of_line, lines), key=lambda metric: metric.name))


def _of_line(line: str) -> Metric:
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError(f"{NODE_TABLE.name}: {line!r} is no metric; write name{{label,label}}=meaning")
    labels = tuple((found["labels"] or "").split(",")) if found["labels"] else ()
    kind: Type = "counter" if found["name"].endswith("_total") else "gauge"
    return Metric(found["name"], kind, labels, found["meaning"])
