"""Analyses PromQL queries: the metrics, and the labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import promql_parser

from herdkeeper_e2e.monitoring.metric import Metric
from herdkeeper_e2e.monitoring.own_metrics import node_metrics, operators_metrics
from herdkeeper_e2e.monitoring.server_metrics import SERVERS

TARGET = frozenset({"namespace", "pod", "component", "kind", "name", "instance", "job"})
"""Labels that the chart's PodMonitor adds to each series of a server."""
_VOLUME = frozenset({"namespace", "persistentvolumeclaim"})
_OF_PARTS = {("histogram", "_bucket"): frozenset({"le"}), ("summary", ""): frozenset({"quantile"})}
_ELSEWHERE = {"up": TARGET, "kubelet_volume_stats_available_bytes": _VOLUME, "kubelet_volume_stats_capacity_bytes": _VOLUME}
"""Metrics of Prometheus and the kubelets, which every usual installation collects."""


@dataclass(frozen=True)
class Asked:
    """A selector of a query: the selected names, and its conditions on labels (name, operator, value)."""

    names: frozenset[str]
    matchers: tuple[tuple[str, str, str], ...]


def known_labels() -> Mapping[str, frozenset[str]]:
    """Returns all labels of each series of the reference, by name."""
    found = dict(_ELSEWHERE)
    ours: list[tuple[Metric, frozenset[str]]] = [(metric, frozenset()) for metric in operators_metrics()]
    ours += [(metric, TARGET) for metric in (*node_metrics(), *(metric for server in SERVERS for metric in server.metrics))]
    for metric, target in ours:
        for series in metric.series:
            extra = _OF_PARTS.get((metric.type, series.removeprefix(metric.name)), frozenset())
            found[series] = frozenset(metric.labels) | target | extra
    return found


def asked_by(query: str) -> tuple[Asked, ...]:
    """Returns its selectors. A pattern of names stands for the matching ones in the reference. Raises ValueError for invalid PromQL."""
    found: list[Any] = []
    promql_parser.walk(promql_parser.parse(query), lambda part: found.append(part) if hasattr(part, "matchers") else None, None)
    return tuple(map(_asked, found))


def _asked(selector: Any) -> Asked:
    matchers = tuple((each.name, str(each.op), each.value) for each in selector.matchers.matchers)
    if selector.name:
        return Asked(frozenset({selector.name}), matchers)
    pattern = next(value for name, _, value in matchers if name == "__name__")
    names = frozenset(name for name in known_labels() if re.fullmatch(pattern, name))
    return Asked(names, tuple(each for each in matchers if each[0] != "__name__"))
