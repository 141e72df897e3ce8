"""Flux applies a database from a git repository, waits for it, changes it, mends it and prunes it: examples/gitops/flux with Flux's own
controllers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest
import yaml
from conftest import QUICKSTART, RESYNC_SECONDS, START, say
from shop import ADDRESS, Shop, opened

from herdkeeper_e2e import cluster
from herdkeeper_e2e.conditions import condition, unsettled_reason
from herdkeeper_e2e.flux import HealthCheckError, ready
from herdkeeper_e2e.kstatus import judged
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.release.build import install_manifest
from herdkeeper_e2e.tools_pod import Database, ToolsPod
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

EXAMPLES = cluster.REPOSITORY / "examples"
DATABASE = (EXAMPLES / "quickstart.yaml").read_text()
CHANGED = DATABASE.replace("bookies: 4 ", "bookies: 5 ").replace("memory: 768Mi", "memory: 800Mi")
KINDS = ("ZooKeeperCluster", "BookKeeperCluster", "HerdDBCluster", "Tablespace")
"""In the order in which each needs those before it."""
EXAMPLE = (EXAMPLES / "gitops/flux/database.yaml").read_text()
INSTALLED = "customresourcedefinitions,deployments,services,roles,clusterroles,clusterrolebindings,validatingadmissionpolicies"
KEPT = "secrets,persistentvolumeclaims"
MANAGED = "app.kubernetes.io/managed-by=herdkeeper"
PAUSED = "herdkeeper.io/paused"
PATIENCE = Limit(300, 1)
ROW = [{"name": "Bergamo"}]


def config_map(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n"


class DatabaseShop(Shop):
    """The example's database, which Flux applies."""

    def change(self, database: str | None) -> str:
        """Commits another database, which Flux fetches at once."""
        return self.commit({"database/quickstart.yaml": database})

    def carried_out(self, commit: str) -> None:
        """Waits until Flux's Kustomization is Ready at a commit: it has waited before, and the database is as declared."""
        waits: set[str] = set()

        def question() -> bool | Pending:
            found = self.flux.kustomization("database")
            answer = ready(found, commit)
            reconciling = condition(found, "Reconciling")
            if isinstance(answer, Pending) and reconciling is not None and commit in reconciling["message"]:
                waits.add(reconciling["message"].partition(" for revision")[0])
            return answer

        wait_for(f"the Kustomization at {commit}", question, START, say)
        assert "Running health checks" in waits
        self.current()

    def applied_again(self) -> None:
        """Flux applies the same commit again, as at each interval, and is Ready."""
        self.flux.reconcile("database", START)

    def current(self) -> None:
        """Waits until kstatus calls all of them Current, as Flux just has: a busy server that answers late is not Ready for a moment."""

        def question() -> bool | Pending:
            verdicts = judged(self.resources())
            return True if verdicts == ["Current"] * len(KINDS) else Pending(", ".join(verdicts))

        wait_for("kstatus' word on all resources", question, PATIENCE, say)

    def resources(self) -> list[Object]:
        return self.kubectl.list(QUICKSTART)

    def settled(self) -> list[Object]:
        """The resources once all are Ready, and the operator does nothing more."""

        def question() -> list[Object] | Pending:
            found = self.resources()
            busy = [reason for reason in map(unsettled_reason, found) if reason is not None]
            return Pending("; ".join(busy)) if busy or len(found) < len(KINDS) else found

        return wait_for("a settled database", question, START, say)

    def spec(self, kind: str, name: str) -> Object:
        found = self.kubectl.existing(kind, name)
        return dict(found["spec"])

    def tools(self) -> ToolsPod:
        return ToolsPod(self.kubectl, "tools", Database.of(self.kubectl, "db", "bk", "flights")).start()

    def data(self) -> dict[str, str]:
        """All volume claims and Secrets that outlive what they were made for, by kind and name, and what identifies each."""
        found = [item["metadata"] | {"kind": item["kind"]} for item in self.kubectl.list(KEPT, MANAGED)]
        return {f"{each['kind']}/{each['name']}": each["uid"] for each in found if "ownerReferences" not in each}


@pytest.fixture(scope="module")
def shop(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DatabaseShop]:
    with opened(DatabaseShop, "shop", tmp_path_factory.mktemp("flux"), pytestconfig) as made:
        yield made
    made.kubectl.run("delete", "namespace", made.kubectl.namespace, timeout_seconds=300)


def versions(kubectl: Kubectl, kinds: str, selector: str = "") -> dict[str, tuple[str, int]]:
    """What changes with each write, and with each of a spec, of all objects of these kinds."""
    found = {f"{item['kind']}/{item['metadata']['name']}": item["metadata"] for item in kubectl.list(kinds, selector)}
    return {name: (metadata["resourceVersion"], metadata.get("generation", 0)) for name, metadata in found.items()}


def install_yaml(kubectl: Kubectl, resync_seconds: int) -> str:
    """A release's install.yaml with this setting. A changed image with the same tag restarts the operator."""
    documents = [each for each in yaml.safe_load_all(install_manifest(cluster.REPOSITORY / "charts/herdkeeper")) if each]
    (template,) = [each["spec"]["template"] for each in documents if each["kind"] == "Deployment"]
    template["metadata"].setdefault("annotations", {})["herdkeeper.io/image"] = cluster.operator_image(kubectl.environment, say)
    (setting,) = [each for each in template["spec"]["containers"][0]["env"] if each["name"] == "HERDKEEPER_RESYNC_SECONDS"]
    setting["value"] = str(resync_seconds)
    return str(yaml.safe_dump_all(documents))


def test_flux_installs_the_operator_without_helm(shop: DatabaseShop) -> None:
    commit = shop.repository.commit({"operator/install.yaml": install_yaml(shop.kubectl, RESYNC_SECONDS)})
    repository = EXAMPLE.split("---")[0]
    shop.flux.kubectl.apply(repository.replace(ADDRESS, shop.repository.url))
    shop.flux.kubectl.apply(EXAMPLES / "gitops/flux/operator.yaml")
    wait_for("the operator", lambda: ready(shop.flux.kustomization("operator"), commit), PATIENCE, say)
    operator = shop.kubectl.in_namespace(cluster.OPERATOR_NAMESPACE)
    before = versions(operator, INSTALLED, "kustomize.toolkit.fluxcd.io/name=operator")
    assert len(before) > len(INSTALLED.split(","))
    shop.flux.reconcile("operator", PATIENCE)
    assert versions(operator, INSTALLED, "kustomize.toolkit.fluxcd.io/name=operator") == before


def test_flux_is_ready_once_the_database_is_and_applies_the_application_after_it(shop: DatabaseShop) -> None:
    shop.repository.commit({"database/notes.yaml": config_map("notes"), "shop/settings.yaml": config_map("settings")})
    commit = shop.change(DATABASE)
    shop.flux.kubectl.apply(EXAMPLE.replace(ADDRESS, shop.repository.url))
    shop.carried_out(commit)
    since = [_condition(resource, "Ready")["lastTransitionTime"] for resource in shop.resources()]
    wait_for("the application", lambda: ready(shop.flux.kustomization("shop"), commit), PATIENCE, say)
    settings = shop.kubectl.existing("configmap", "settings")
    assert settings["metadata"]["creationTimestamp"] >= max(since)
    inventory = shop.flux.kustomization("database")["status"]["inventory"]["entries"]
    assert {entry["id"].split("_")[1] for entry in inventory} == {"zk", "bk", "db", "flights", "notes"}


def test_a_committed_change_is_waited_for_until_it_is_carried_out(shop: DatabaseShop) -> None:
    """A bookie joins, and the SQL nodes are rolled."""
    tools = shop.tools()
    tools.run("query", "CREATE TABLE cities (id INT PRIMARY KEY, name STRING)", "INSERT INTO cities (id, name) VALUES (1, 'Bergamo')")
    commit = shop.change(CHANGED)
    shop.carried_out(commit)
    pods = {pod["metadata"]["name"]: pod for pod in shop.kubectl.list("pods", MANAGED)}
    assert _condition(pods["bk-bookie-4-0"], "Ready")["status"] == "True"
    for name in ("db-herddb-0", "db-herddb-1"):
        assert pods[name]["spec"]["containers"][0]["resources"]["limits"]["memory"] == "800Mi"
    assert tools.query("SELECT name FROM cities WHERE id = 1") == ROW


def test_a_commit_that_cannot_be_carried_out_fails_at_once_and_the_next_one_mends_it(shop: DatabaseShop) -> None:
    with pytest.raises(HealthCheckError, match=r"stalled resources: .*BookKeeperCluster/shop/bk"):
        shop.carried_out(shop.change(CHANGED.replace("size: 2Gi", "size: 1Gi", 1)))
    shop.carried_out(shop.change(CHANGED))


def test_flux_and_the_operator_leave_a_settled_database_as_it_is(shop: DatabaseShop) -> None:
    shop.settled()
    everything = f"{QUICKSTART},{KEPT},statefulsets,services,configmaps,networkpolicies"
    before = versions(shop.kubectl, everything)
    for _ in range(2):
        shop.applied_again()
    assert versions(shop.kubectl, everything) == before


def test_another_commit_of_the_operator_rolls_it_and_no_server(shop: DatabaseShop) -> None:
    def pods(namespace: str) -> set[str]:
        return {pod["metadata"]["uid"] for pod in shop.kubectl.in_namespace(namespace).list("pods")}

    operator, servers = pods(cluster.OPERATOR_NAMESPACE), pods(shop.kubectl.namespace)
    commit = shop.commit({"operator/install.yaml": install_yaml(shop.kubectl, RESYNC_SECONDS + 1)})
    wait_for("the operator", lambda: ready(shop.flux.kustomization("operator"), commit), PATIENCE, say)
    assert pods(cluster.OPERATOR_NAMESPACE) - operator
    shop.settled()
    assert pods(shop.kubectl.namespace) == servers


def test_what_somebody_edits_is_put_back_and_what_the_operator_wrote_stays(shop: DatabaseShop) -> None:
    """One field that is in git, and one that is not."""
    data = shop.data()
    before = {kind: shop.spec(kind, name) for kind, name in (("zookeepercluster", "zk"), ("tablespace", "flights"))}
    shop.kubectl.want("zookeepercluster", "zk", clients=[{"podLabels": {"app": "stranger"}}])
    shop.kubectl.want("tablespace", "flights", deletionPolicy="Delete")
    wait_for("the operator's look", lambda: _observed(shop.resources()), PATIENCE, say)
    shop.applied_again()
    assert {kind: shop.spec(kind, name) for kind, name in (("zookeepercluster", "zk"), ("tablespace", "flights"))} == before
    assert shop.data() == data
    assert judged(shop.resources()) == ["Current"] * len(KINDS)


def test_a_pause_by_the_plugin_stays_and_one_by_kubectl_annotate_is_taken_away(shop: DatabaseShop) -> None:
    plugin = [sys.executable, "-m", "herdkeeper.plugin.main"]
    target = ("tablespace/flights", "--namespace", shop.kubectl.namespace)
    cluster.run([*plugin, "pause", *target], shop.kubectl.environment, say)
    shop.kubectl.run("annotate", "herddbcluster", "db", f"{PAUSED}=true")
    shop.applied_again()
    paused = {item["metadata"]["name"] for item in shop.resources() if PAUSED in item["metadata"].get("annotations", {})}
    assert paused == {"flights"}
    cluster.run([*plugin, "resume", *target], shop.kubectl.environment, say)


def test_what_somebody_deletes_in_the_foreground_comes_back_with_its_data(shop: DatabaseShop) -> None:
    data = shop.data()
    names = [f"{item['kind']}/{item['metadata']['name']}" for item in shop.resources()]
    shop.kubectl.run("delete", "--cascade=foreground", *names, timeout_seconds=600)
    assert shop.resources() == []
    assert shop.data() == data
    shop.applied_again()
    shop.current()
    assert shop.data() == data
    assert shop.tools().query("SELECT name FROM cities WHERE id = 1") == ROW


def test_what_is_taken_out_of_the_folder_goes_in_order_and_leaves_its_data(shop: DatabaseShop) -> None:
    data = shop.data()
    shop.change(None)

    def gone() -> bool | Pending:
        # kubectl asks for the kinds in this order: who is seen gone was gone before the next one was asked for
        left = [item["kind"] for item in json.loads(shop.kubectl.run("get", QUICKSTART, "-o", "json"))["items"]]
        assert left == list(KINDS[: len(left)])
        return Pending(f"{', '.join(left)} exist") if left else True

    wait_for("the end of the database", gone, PATIENCE, say)
    pods = "pods,statefulsets,services"
    wait_for("the end of its pods", lambda: not shop.kubectl.list(pods, MANAGED) or Pending("there are some"), PATIENCE)
    assert shop.data() == data
    assert shop.kubectl.get("configmap", "notes") is not None
    given_up = [event["message"] for event in shop.kubectl.list("events") if event["reason"] == "DeletionGivenUp"]
    assert given_up == []


def _condition(item: Object, name: str) -> Object:
    found = condition(item, name)
    assert found is not None
    return dict(found)


def _observed(items: list[Object]) -> bool | Pending:
    late = [item["metadata"]["name"] for item in items if item["status"]["observedGeneration"] != item["metadata"]["generation"]]
    return Pending(f"the operator has not seen the change of {', '.join(late)}") if late else True
