"""A real Prometheus with the chart's monitors reads the operator once the chart names it, and every server once `spec.scrapers` does:
those with certificates by HTTPS. Then no alert fires, each panel of the dashboards shows something, and the dashboards are drawn for a
person to look at."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping

import pytest
from conftest import RESYNC_SECONDS, Stack, begin_anew, goes_in_the_end, say

from herdkeeper.shared.names import OWNER_KIND_LABEL, OWNER_NAME_LABEL
from herdkeeper_e2e.cluster import OPERATOR_NAMESPACE, install_operator
from herdkeeper_e2e.control_plane import rendered
from herdkeeper_e2e.kubectl import Kubectl, KubectlError
from herdkeeper_e2e.monitoring.dashboards import DASHBOARDS
from herdkeeper_e2e.monitoring.draw import DRAWN, chosen, draw
from herdkeeper_e2e.monitoring.prometheus_pod import LABELS, PrometheusPod, Target
from herdkeeper_e2e.monitoring.queries import asked_by
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

MONITORING = "monitoring"
CHART = ("metrics.serviceMonitor.create=true", "metrics.podMonitor.create=true", "metrics.alerts.create=true")
HOME_OF_PROMETHEUS = {"kubernetes.io/metadata.name": MONITORING}
SCRAPERS = [{"podLabels": LABELS, "namespaceLabels": HOME_OF_PROMETHEUS}]
OPERATORS_SCRAPERS = [{"podSelector": {"matchLabels": LABELS}, "namespaceSelector": {"matchLabels": HOME_OF_PROMETHEUS}}]
SERVERS = "app.kubernetes.io/name in (zookeeper,bookie,autorecovery,herddb)"
PATIENCE = Limit(300, 2)
ELSEWHERE = re.compile(
    r"kubelet_.*|herdkeeper_(checkpoint|restore_drill|audit|recovery_window|archive|certificate_expires|scheduled"
    r"|under_replicated_since|log_retention_ends)_.*"
)
"""Metrics of kubelets, which are not scraped here, and of what this stack does not have: schedules, an archive, a user's certificate,
ledgers that lack copies, a log kept for somebody."""


@pytest.fixture
def prometheus(request: pytest.FixtureRequest, stack: Stack, enforced: None) -> PrometheusPod:
    made = PrometheusPod(Kubectl(MONITORING, stack.kubectl.environment))
    begin_anew(made.kubectl)
    goes_in_the_end(request, stack.kubectl, "namespace", MONITORING)
    goes_in_the_end(request, stack.kubectl, *made.cluster_wide)
    made.start(rendered(*CHART))
    return made


def test_a_real_prometheus_reads_every_server_and_its_alerts_and_dashboards_have_data(stack: Stack, prometheus: PrometheusPod) -> None:
    kubectl, begun = stack.kubectl, time.monotonic()
    servers = {pod["metadata"]["name"]: pod["metadata"]["labels"] for pod in kubectl.list("pods", SERVERS)}
    assert {labels["app.kubernetes.io/name"] for labels in servers.values()} == {"zookeeper", "bookie", "autorecovery", "herddb"}

    def read(health: str) -> dict[str, Target] | Pending:
        """The servers' targets by pod, once they and the operator are like this."""
        try:
            targets = prometheus.targets()
        except KubectlError:
            return Pending(f"Prometheus does not answer: {prometheus.log()[-500:]}")
        found = {each.labels["pod"]: each for each in targets if each.labels["namespace"] == kubectl.namespace}
        operators = [each for each in targets if each.labels["namespace"] == OPERATOR_NAMESPACE]
        others = {name: (each.health, each.error) for name, each in found.items() if each.health != health}
        if set(found) != set(servers) or others:
            return Pending(f"{len(found)} of {len(servers)} servers; not {health}: {json.dumps(others)[:300]}")
        if [each.health for each in operators] != [health]:
            return Pending(f"the operator is not {health}: {operators}")
        return found

    wait_for("neither the operator nor a server to let it in", lambda: read("down"), PATIENCE, say)
    install_operator(kubectl.environment, say, RESYNC_SECONDS, f"networkPolicy.scrapers={json.dumps(OPERATORS_SCRAPERS)}")
    for kind, name in (("zookeepercluster", "zk"), ("bookkeepercluster", "bk"), ("herddbcluster", "db")):
        kubectl.want(kind, name, scrapers=SCRAPERS)
    found = wait_for("the operator and every server to be read", lambda: read("up"), PATIENCE, say)
    for name, target in found.items():
        labels = servers[name]
        assert target.url.startswith("https://" if labels["app.kubernetes.io/name"] == "herddb" else "http://")
        wanted = (labels[OWNER_KIND_LABEL], labels[OWNER_NAME_LABEL], labels["app.kubernetes.io/name"])
        assert (target.labels["kind"], target.labels["name"], target.labels["component"]) == wanted
    stack.wait_until_ready()

    def settled() -> list[Mapping[str, object]] | Pending:
        """All rules, once each has been evaluated and none waits for its time to fire."""
        rules = prometheus.rules()
        waiting = {rule["name"]: rule["health"] for rule in rules if rule["health"] != "ok" or rule.get("state") != "inactive"}
        return Pending(f"rules: {waiting}") if waiting or not rules else list(rules)

    say(f"{len(wait_for('rules that find nothing', settled, PATIENCE, say))} rules find nothing")
    wait_for("each panel to show something", lambda: all_panels(prometheus), PATIENCE, say)
    for drawn in draw(prometheus.ask, DRAWN, time.monotonic() - begun):
        say(f"drawn: {drawn}")


def all_panels(prometheus: PrometheusPod) -> bool | Pending:
    """Whether each query of the dashboards has data, or one of its metrics is not collected here."""
    empty = [text for text in queries() if not elsewhere(text) and not prometheus.query(text)]
    return Pending(f"{len(empty)} without data: {' | '.join(empty)[:1500]}") if empty else True


def queries() -> Iterator[str]:
    """As Grafana sends them if everything is chosen."""
    for dashboard in DASHBOARDS:
        for panel in dashboard.panels:
            # what is False, or was found, is nothing while all is well
            yield chosen(panel.query.text).removesuffix(" == 0").removesuffix(" > 0")


def elsewhere(query: str) -> bool:
    return any(all(ELSEWHERE.fullmatch(name) for name in asked.names) for asked in asked_by(query))
