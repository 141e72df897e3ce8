"""The quickstart reaches Ready, and then nothing is written any more."""

from __future__ import annotations

import re

from conftest import RESYNC_SECONDS, Stack

from herdkeeper_e2e.cluster import OPERATOR_NAMESPACE, REPOSITORY
from herdkeeper_e2e.kubectl import Kubectl
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

OBJECTS = (
    "zookeeperclusters,bookkeeperclusters,herddbclusters,tablespaces,statefulsets,deployments,configmaps,services,secrets,"
    "poddisruptionbudgets,networkpolicies,persistentvolumeclaims"
)
RECONCILES = 10
KINDS = ("ZooKeeperCluster", "BookKeeperCluster", "HerdDBCluster", "Tablespace")


def resource_versions(kubectl: Kubectl) -> dict[str, str]:
    return {f"{item['kind']}/{item['metadata']['name']}": item["metadata"]["resourceVersion"] for item in kubectl.list(OBJECTS)}


def metrics(kubectl: Kubectl) -> dict[str, float]:
    """The operator's own counters, by name and labels."""
    path = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/services/herdkeeper-metrics:8080/proxy/metrics"
    lines = kubectl.run("get", "--raw", path).splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line.startswith("herdkeeper_"))}


def total(counters: dict[str, float], pattern: str) -> float:
    return sum(value for name, value in counters.items() if re.match(pattern, name))


def test_a_second_apply_and_ten_reconciles_of_each_resource_write_nothing(stack: Stack) -> None:
    kubectl = stack.kubectl

    def at_rest() -> bool | Pending:
        """Statuses follow the cluster for a moment after it became Ready; then no reconcile writes."""
        before = total(metrics(kubectl), "herdkeeper_writes_total")
        reconciled = total(metrics(kubectl), "herdkeeper_reconcile_total")
        wait_for("a round of reconciles", lambda: _reconciled(kubectl, reconciled + 2 * len(KINDS)), Limit(300))
        after = total(metrics(kubectl), "herdkeeper_writes_total")
        return True if before == after else Pending(f"{after - before:.0f} writes in a round of reconciles")

    wait_for("rest", at_rest, Limit(600))
    versions = resource_versions(kubectl)
    begun = metrics(kubectl)
    assert total(begun, "herdkeeper_writes_total") > 0, "the writes that made the quickstart were not counted"

    said = kubectl.apply(REPOSITORY / "examples/quickstart.yaml").splitlines()
    assert [line for line in said if not line.endswith("unchanged")] == []

    def each_was_reconciled() -> bool | Pending:
        now = metrics(kubectl)
        missing = [
            kind
            for kind in KINDS
            if total(now, rf'herdkeeper_reconcile_total{{kind="{kind}"') - total(begun, rf'herdkeeper_reconcile_total{{kind="{kind}"')
            < RECONCILES
        ]
        return Pending(f"fewer than {RECONCILES} reconciles of {', '.join(missing)}") if missing else True

    wait_for("ten reconciles of each", each_was_reconciled, Limit(RECONCILES * RESYNC_SECONDS * 12))
    assert total(metrics(kubectl), "herdkeeper_writes_total") == total(begun, "herdkeeper_writes_total")
    assert resource_versions(kubectl) == versions


def _reconciled(kubectl: Kubectl, wanted: float) -> bool | Pending:
    now = total(metrics(kubectl), "herdkeeper_reconcile_total")
    return True if now >= wanted else Pending(f"{now:.0f} of {wanted:.0f} reconciles")
