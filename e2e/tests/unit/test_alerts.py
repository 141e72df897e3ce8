"""The alerts of examples/monitoring: about metrics and labels that there are, each with a runbook."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from herdkeeper.api import KINDS
from herdkeeper.protocol.audit_finding import AuditDepth, Severity
from herdkeeper.shared import conditions, names
from herdkeeper.shared.reason import Reason
from herdkeeper_e2e.monitoring.queries import asked_by, known_labels
from herdkeeper_e2e.release.chart_files import MONITORING, REPOSITORY

RULES = [
    rule
    for document in yaml.safe_load_all(MONITORING.read_text())
    for group in document["spec"].get("groups", ())
    for rule in group["rules"]
]
VALUES = {
    "kind": {kind.KIND for kind in KINDS},
    "severity": {severity.value for severity in Severity},
    "depth": {depth.value for depth in AuditDepth},
    "outcome": {"ok", "refused", "failed", "gone"},
    "component": {names.ZOOKEEPER_COMPONENT, names.BOOKIE_COMPONENT, names.AUTORECOVERY_COMPONENT, names.HERDDB_COMPONENT, ""},
    "type": {value for value in vars(conditions).values() if isinstance(value, str)},
    "reason": {reason.value for reason in Reason},
}
"""That a label may have."""
RUNBOOKS = REPOSITORY / "docs/runbooks.md"
rules = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])


@rules
def test_an_alert_asks_for_metrics_by_labels_and_values_that_there_are(rule: dict[str, Any]) -> None:
    asked = asked_by(rule["expr"])
    assert asked
    for selector in asked:
        assert selector.names, "no metric of the reference has such a name"
        for name in selector.names:
            assert name in known_labels()
            for label, operator, value in selector.matchers:
                must_be_absent = (operator, value) == ("MatchOp.Equal", "")
                assert (label in known_labels()[name]) is not must_be_absent, label
                assert set(value.split("|")) <= VALUES[label], (label, value)


@rules
def test_an_alert_says_what_is_wrong_in_a_sentence_and_how_grave_that_is(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["annotations"]["summary"].endswith(".")


@rules
def test_an_alert_leads_to_a_runbook_with_cause_sight_and_remedy(rule: dict[str, Any]) -> None:
    path, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert REPOSITORY / path == RUNBOOKS
    assert anchor == rule["alert"].lower()
    (section,) = re.findall(rf"^### {rule['alert']}\n(.*?)(?=^#|\Z)", RUNBOOKS.read_text(), re.MULTILINE | re.DOTALL)
    assert re.findall(r"^- \*\*(\w+)\*\*: ", section, re.MULTILINE) == ["Cause", "See", "Do"]


def test_each_runbook_is_of_an_alert() -> None:
    assert re.findall(r"^### (\w+)$", RUNBOOKS.read_text(), re.MULTILINE) == [rule["alert"] for rule in RULES]


def test_alerts_have_names_of_their_own() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES)


def test_there_are_alerts_for_each_page_that_has_metrics() -> None:
    asked = {name for rule in RULES for selector in asked_by(rule["expr"]) for name in selector.names}
    wanted = "audit_findings|drill_failed|log_used_in_time|resource_ready|leading|since_timestamp|certificate_expires|condition|refused"
    assert {name for name in known_labels() if re.search(wanted, name)} <= asked


def test_the_podmonitor_finds_every_server_and_names_its_resource() -> None:
    (monitor,) = [document for document in yaml.safe_load_all(MONITORING.read_text()) if document["kind"] == "PodMonitor"]
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] == names.METRICS_PORT_NAME
    selector = monitor["spec"]["selector"]
    assert selector["matchLabels"] == {names.MANAGED_BY_LABEL: names.MANAGER}
    (expression,) = selector["matchExpressions"]
    assert (expression["key"], set(expression["values"])) == (names.COMPONENT_LABEL, VALUES["component"] - {""})
    labels = {each["targetLabel"]: each["sourceLabels"] for each in endpoint["relabelings"]}
    for target, label in (("kind", names.OWNER_KIND_LABEL), ("name", names.OWNER_NAME_LABEL), ("component", names.COMPONENT_LABEL)):
        assert labels[target] == ["__meta_kubernetes_pod_label_" + re.sub(r"\W", "_", label)]
