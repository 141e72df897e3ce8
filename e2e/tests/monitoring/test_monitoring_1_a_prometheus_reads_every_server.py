"""A real Prometheus with the chart's monitors reads the operator once the chart names it, and every server once `spec.scrapers` does:
those with certificates by HTTPS. The stack has all that a panel can be about: a Checkpoint of a schedule, a restore drill, an audit, an
archive, a log that is kept, and for a moment a ledger that is marked as under-replicated. No alert fires, each panel of the dashboards
shows something, and the dashboards are drawn for a person to look at. The jobs run while NetworkPolicies are enforced."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from conftest import RESYNC_SECONDS, Stack, begin_anew, goes_in_the_end, say
from own_tablespace import OwnTablespace
from runs import SMALL, first_ledger

from herdkeeper.shared.names import OWNER_KIND_LABEL, OWNER_NAME_LABEL, RUN_NOW_ANNOTATION
from herdkeeper_e2e.archives import archived_after
from herdkeeper_e2e.cluster import OPERATOR_NAMESPACE, install_operator
from herdkeeper_e2e.conditions import unfinished_reason
from herdkeeper_e2e.control_plane import rendered
from herdkeeper_e2e.jobs import wait_until_succeeded
from herdkeeper_e2e.kubectl import Kubectl, KubectlError, Object, resource
from herdkeeper_e2e.monitoring.dashboards import DASHBOARDS
from herdkeeper_e2e.monitoring.draw import DRAWN, chosen, draw
from herdkeeper_e2e.monitoring.prometheus_pod import LABELS, PrometheusPod, Target
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

MONITORING = "monitoring"
CHART = ("metrics.serviceMonitor.create=true", "metrics.podMonitor.create=true", "metrics.alerts.create=true")
HOME_OF_PROMETHEUS = {"kubernetes.io/metadata.name": MONITORING}
SCRAPERS = [{"podLabels": LABELS, "namespaceLabels": HOME_OF_PROMETHEUS}]
OPERATORS_SCRAPERS = [{"podSelector": {"matchLabels": LABELS}, "namespaceSelector": {"matchLabels": HOME_OF_PROMETHEUS}}]
SERVERS = "app.kubernetes.io/name in (zookeeper,bookie,autorecovery,herddb)"
PATIENCE = Limit(300, 2)
NAME = "shown"
"""Of the tablespace with all this, of the schedule of its Checkpoints, and of the audit."""
NEVER, EACH_MINUTE = "0 0 1 1 *", "* * * * *"
DRILL = {"server": {"resources": {"cpu": "100m", "memory": "768Mi"}, "storage": {"size": "1Gi"}}, "job": SMALL, "schedule": EACH_MINUTE}
DRILLED = Limit(900, 2)


@pytest.fixture
def prometheus(request: pytest.FixtureRequest, stack: Stack, enforced: None) -> PrometheusPod:
    made = PrometheusPod(Kubectl(MONITORING, stack.kubectl.environment))
    begin_anew(made.kubectl)
    goes_in_the_end(request, stack.kubectl, "namespace", MONITORING)
    goes_in_the_end(request, stack.kubectl, *made.cluster_wide)
    made.start(rendered(*CHART))
    return made


@pytest.fixture
def shown(request: pytest.FixtureRequest, stack: Stack, enforced: None) -> OwnTablespace:
    """A tablespace that has a verified Checkpoint of a schedule, a drill of it, an archive, and a closed ledger that is kept for the next
    Checkpoint. Its cluster has been audited."""
    kubectl = stack.kubectl
    own = OwnTablespace.made(request, stack, NAME, {"keepUntilCheckpoint": True})
    for kind in ("replicationaudit", "scheduledcheckpoint"):
        goes_in_the_end(request, kubectl, kind, NAME)
    own.write_some_rows("before_the_checkpoint")
    kubectl.apply_all(declared(own))
    wait_until_succeeded(kubectl, "replicationaudit", NAME, say)  # before the leader moves, which may leave copies out
    wait_for_drill(own, "Running", "Succeeded", "Failed")
    # One drill is enough, and the next one must not be overdue. It has chosen before there is an archive: else it has a Checkpoint made.
    kubectl.want("scheduledcheckpoint", NAME, drill={"schedule": NEVER})
    kubectl.want("tablespace", NAME, log={"archive": {"destination": own.destination, "everySeconds": 5}})
    own.write_some_rows("after_the_checkpoint")
    own.switch_over()
    archived_after(kubectl, NAME, datetime.now(UTC), say)
    drill = wait_for_drill(own, "Succeeded", "Failed")
    assert drill["outcome"] == "Succeeded", drill["message"]
    own.wait_until_ready()
    return own


def declared(own: OwnTablespace) -> list[Object]:
    """An audit, and a schedule whose times don't come: a Checkpoint is asked for at once, and a drill each minute."""
    audit = {"bookKeeperRef": {"name": "bk"}, "depth": "Light", "job": SMALL}
    template = {"tablespaceRef": {"name": NAME}, "destination": own.destination, "job": SMALL}
    schedule = resource("ScheduledCheckpoint", NAME, schedule=NEVER, template=template, drill=DRILL)
    schedule["metadata"]["annotations"] = {RUN_NOW_ANNOTATION: "yes"}
    return [resource("ReplicationAudit", NAME, **audit), schedule]


def wait_for_drill(own: OwnTablespace, *outcomes: str) -> Object:
    """The newest drill of the schedule, once it has one of these outcomes."""
    kubectl = own.stack.kubectl

    def ask() -> Object | Pending:
        drill: Object = own.stack.sql.get("scheduledcheckpoint", NAME).get("status", {}).get("lastDrill", {})
        if drill.get("outcome") in outcomes:
            return drill
        runs = {run["metadata"]["name"]: unfinished_reason(run) for run in kubectl.list("checkpoints", f"{OWNER_NAME_LABEL}={NAME}")}
        return Pending(f"the newest drill: {drill or 'none'}; Checkpoints, and why they are unfinished: {runs or 'none'}")

    return wait_for(f"a drill that is {' or '.join(outcomes)}", ask, DRILLED, say)


@contextmanager
def a_ledger_marked(own: OwnTablespace) -> Iterator[None]:
    """Within the block, BookKeeper's metadata says that a ledger lacks a copy. None is missing."""
    root = own.stack.sql.get("bookkeepercluster", "bk")["status"]["ledgersRoot"]
    ledger = first_ledger(own.stack, own.tools)["ledger"]
    process = own.tools.as_operator().steered("marked_ledger", "--ledgers-root", root, "--ledger", str(ledger)).acknowledges(1)
    try:
        yield
    finally:
        process.stop()


def test_a_real_prometheus_reads_every_server_and_its_alerts_and_dashboards_have_data(
    stack: Stack, shown: OwnTablespace, prometheus: PrometheusPod
) -> None:
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
        """All rules, once each has been evaluated and finds nothing here. Stacks of other namespaces don't let this Prometheus in."""
        here, rules = (kubectl.namespace, OPERATOR_NAMESPACE), prometheus.rules()
        unhealthy = {rule["name"]: rule["health"] for rule in rules if rule["health"] != "ok"}
        alerts = [alert["labels"] for rule in rules for alert in rule.get("alerts", ())]
        found = [labels for labels in alerts if labels.get("namespace", kubectl.namespace) in here]
        return Pending(f"rules: {unhealthy}; alerts: {found}") if unhealthy or found or not rules else list(rules)

    say(f"{len(wait_for('rules that find nothing', settled, PATIENCE, say))} rules find nothing")
    with a_ledger_marked(shown):
        wait_for("each panel to show something", lambda: all_panels(prometheus), PATIENCE, say)
    for drawn in draw(prometheus.ask, DRAWN, time.monotonic() - begun):
        say(f"drawn: {drawn}")


def all_panels(prometheus: PrometheusPod) -> bool | Pending:
    """Whether each query of the dashboards has data."""
    empty = [text for text in queries() if not prometheus.query(text)]
    return Pending(f"{len(empty)} without data: {' | '.join(empty)[:1500]}") if empty else True


def queries() -> Iterator[str]:
    """As Grafana sends them if everything is chosen."""
    for dashboard in DASHBOARDS:
        for panel in dashboard.panels:
            # what is False, or was found, is nothing while all is well
            yield chosen(panel.query.text).removesuffix(" == 0").removesuffix(" > 0")
