"""Flux installs, mends, upgrades and uninstalls the operator by its chart, from a git repository, as
examples/gitops/flux/operator-by-helm.yaml says, with Flux's own controllers. A ZooKeeperCluster stays through all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest
import yaml
from conftest import RESYNC_SECONDS, START, say
from shop import ADDRESS, Shop, opened

from herdkeeper_e2e import cluster
from herdkeeper_e2e.conditions import unsettled_reason
from herdkeeper_e2e.flux import HealthCheckError, released
from herdkeeper_e2e.kubectl import Kubectl, Object, resource
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

FOLDER = cluster.REPOSITORY / "charts/herdkeeper"
EXAMPLES = cluster.REPOSITORY / "examples/gitops/flux"
RELEASE = "herdkeeper"
MADE = "deployments,services,roles,rolebindings,serviceaccounts"
OF_RELEASE = f"app.kubernetes.io/instance={RELEASE}"
ENSEMBLE = resource("ZooKeeperCluster", "zk", replicas=1, storage={"size": "1Gi"})
PATIENCE = Limit(300, 1)


def chart(changes: Mapping[str, str] | None = None) -> Mapping[str, str | None]:
    """The chart's files as they lie in the repository, some of them with other texts."""
    files = {str(path.relative_to(FOLDER)): path.read_text() for path in sorted(FOLDER.rglob("*")) if path.is_file()}
    return {f"charts/herdkeeper/{name}": (changes or {}).get(name, text) for name, text in files.items()}


class OperatorShop(Shop):
    """The operator, which Flux installs, and the namespace whose ensemble it keeps."""

    @property
    def operator(self) -> Kubectl:
        return self.kubectl.in_namespace(cluster.OPERATOR_NAMESPACE)

    def released(self, commit: str) -> None:
        """Waits until Flux has released the chart of a commit. Raises HealthCheckError."""
        wait_for(f"the release of {commit}", lambda: released(self.flux.helm_release(RELEASE), commit), START, say)

    def made(self) -> dict[str, int]:
        """What changes with each write of a spec, of the release's objects."""
        return {
            f"{item['kind']}/{item['metadata']['name']}": item["metadata"].get("generation", 0)
            for item in self.operator.list(MADE, OF_RELEASE)
        }

    def ensemble(self) -> Object:
        """The ensemble once nothing is left to do."""

        def question() -> Object | Pending:
            found = self.kubectl.existing("zookeepercluster", "zk")
            reason = unsettled_reason(found)
            return found if reason is None else Pending(reason)

        return wait_for("a settled ensemble", question, START, say)

    def pods(self) -> set[str]:
        return {pod["metadata"]["uid"] for pod in self.kubectl.list("pods")}


@pytest.fixture(scope="module")
def shop(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorShop]:
    with opened(OperatorShop, "helm", tmp_path_factory.mktemp("flux"), pytestconfig) as made:
        yield made
    # Flux has uninstalled the operator, without which no resource can end
    cluster.install_operator(made.kubectl.environment, say, RESYNC_SECONDS)
    made.kubectl.run("delete", "namespace", made.kubectl.namespace, timeout_seconds=300)


def example(shop: OperatorShop) -> str:
    """The example's HelmRelease. A changed image with the same tag restarts the operator."""
    release = yaml.safe_load((EXAMPLES / "operator-by-helm.yaml").read_text())
    image = cluster.operator_image(shop.kubectl.environment, say)
    release["spec"]["values"] |= {"resyncSeconds": RESYNC_SECONDS, "podAnnotations": {"herdkeeper.io/image": image}}
    return str(yaml.safe_dump(release))


def test_flux_installs_or_takes_over_the_operator_by_its_chart(shop: OperatorShop) -> None:
    commit = shop.repository.commit(chart())
    shop.flux.kubectl.apply((EXAMPLES / "database.yaml").read_text().split("---")[0].replace(ADDRESS, shop.repository.url))
    shop.flux.kubectl.apply(example(shop))
    shop.released(commit)
    assert {"Deployment/herdkeeper", "ServiceAccount/herdkeeper"} <= shop.made().keys()
    shop.kubectl.apply(ENSEMBLE)
    shop.ensemble()


def test_flux_leaves_a_settled_release_as_it_is_and_puts_back_what_somebody_edits(shop: OperatorShop) -> None:
    before = shop.made()
    shop.flux.reconcile_release(RELEASE, PATIENCE)
    assert shop.made() == before
    shop.operator.run("scale", "deployment", "herdkeeper", "--replicas=0")
    shop.flux.reconcile_release(RELEASE, START)

    def put_back() -> bool | Pending:
        replicas = shop.operator.existing("deployment", "herdkeeper")["spec"]["replicas"]
        return True if replicas == 1 else Pending(f"{replicas} replicas")

    wait_for("the operator's replica", put_back, PATIENCE)


def test_a_commit_that_the_chart_refuses_fails_and_the_next_one_mends_it_without_a_restart_of_servers(shop: OperatorShop) -> None:
    servers, values = shop.pods(), (FOLDER / "values.yaml").read_text()
    running = shop.operator.existing("deployment", "herdkeeper")["metadata"]["generation"]
    with pytest.raises(HealthCheckError, match="logLevel"):
        shop.released(shop.commit(chart({"values.yaml": re.sub(r"(?m)^logLevel: .*$", "logLevel: loud", values)})))
    assert shop.operator.existing("deployment", "herdkeeper")["metadata"]["generation"] == running
    changed = re.sub(r"(?m)^logLevel: .*$", "logLevel: debug", values)
    version = re.sub(r"(?m)^version: .*$", "version: 99.0.0", (FOLDER / "Chart.yaml").read_text())
    shop.released(shop.commit(chart({"values.yaml": changed, "Chart.yaml": version})))
    deployment = shop.operator.existing("deployment", "herdkeeper")
    assert deployment["metadata"]["labels"]["helm.sh/chart"].startswith("herdkeeper-99.0.0_")
    (setting,) = [each for each in deployment["spec"]["template"]["spec"]["containers"][0]["env"] if each["name"] == "HERDKEEPER_LOG_LEVEL"]
    assert setting["value"] == "debug"
    shop.ensemble()
    assert shop.pods() == servers


def test_an_uninstall_leaves_the_definitions_and_all_databases(shop: OperatorShop) -> None:
    servers = shop.pods()
    shop.flux.kubectl.run("delete", "helmrelease", RELEASE, timeout_seconds=300)
    assert shop.operator.list("deployments", OF_RELEASE) == []
    assert shop.kubectl.existing("zookeepercluster", "zk")["metadata"].get("deletionTimestamp") is None
    assert shop.pods() == servers
