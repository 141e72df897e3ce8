"""The alerts of examples/monitoring: rules that Prometheus can read, about metrics and labels that the operator has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client.metrics import MetricWrapperBase

from herdkeeper.api import KINDS
from herdkeeper.clients import counters as metrics
from herdkeeper.engine.gauges import audits as audit_metrics
from herdkeeper.engine.gauges import drills as drill_metrics
from herdkeeper.engine.gauges import logs as log_metrics
from herdkeeper.protocol.audit_depth import AuditDepth
from herdkeeper.protocol.audit_finding import Severity

FILE = Path(__file__).resolve().parents[3] / "examples/monitoring/prometheus.yaml"
RULES = [
    rule for document in yaml.safe_load_all(FILE.read_text()) for group in document["spec"].get("groups", ()) for rule in group["rules"]
]
VALUES = {
    "kind": {kind.KIND for kind in KINDS},
    "severity": {severity.value for severity in Severity},
    "depth": {depth.value for depth in AuditDepth},
    "outcome": {"ok", "refused", "failed", "gone"},
}
"""That a label may have."""
rules = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])


def labels() -> dict[str, set[str]]:
    """Of each metric of the operator, by the name that Prometheus has for it."""
    found = {}
    for module in (audit_metrics, drill_metrics, log_metrics, metrics):
        for collector in vars(module).values():
            if isinstance(collector, MetricWrapperBase):
                (family, *_) = collector.describe()
                ending = "_total" if family.type == "counter" else ""
                # There is no other way to learn them of a metric that has no samples yet.
                found[family.name + ending] = set(collector._labelnames)
    return found


def selectors(expression: str) -> list[Any]:
    """Of metrics, in an expression of PromQL. Raises ValueError for one that is none."""
    found: list[Any] = []
    promql_parser.walk(promql_parser.parse(expression), lambda part: found.append(part) if hasattr(part, "matchers") else None, None)
    return found


@rules
def test_an_alert_asks_for_metrics_by_labels_and_values_that_there_are(rule: dict[str, Any]) -> None:
    asked = selectors(rule["expr"])
    assert asked
    for selector in asked:
        assert selector.name in labels()
        for matcher in selector.matchers.matchers:
            assert matcher.name in labels()[selector.name], matcher
            assert set(matcher.value.split("|")) <= VALUES[matcher.name], matcher


@rules
def test_an_alert_says_what_is_wrong_by_labels_that_its_expression_keeps(rule: dict[str, Any]) -> None:
    kept = set.intersection(*(labels()[selector.name] for selector in selectors(rule["expr"])))
    if grouped := re.search(r"\bby \(([^)]*)\)", rule["expr"]):
        kept = {name.strip() for name in grouped.group(1).split(",")}
    summary = rule["annotations"]["summary"]
    assert set(re.findall(r"\$labels\.(\w+)", summary)) <= kept
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert summary.endswith(".")


def test_there_are_alerts_for_each_page_that_has_metrics() -> None:
    asked = {selector.name for rule in RULES for selector in selectors(rule["expr"])}
    assert {name for name in labels() if re.search("audit_findings|drill_failed|log_used_in_time|resource_ready|leading", name)} <= asked
