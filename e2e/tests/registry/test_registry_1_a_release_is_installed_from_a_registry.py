"""What a user with an engine and a registry does: a release is pushed, and a cluster that has nothing else pulls all of it from there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from conftest import QUICKSTART, START, say

from herdkeeper.api.default_images import VERSION
from herdkeeper_e2e.cluster import OPERATOR_NAMESPACE, RELEASE, REPOSITORY, cluster_environment, run
from herdkeeper_e2e.conditions import all_ready
from herdkeeper_e2e.image_registry import ImageRegistry
from herdkeeper_e2e.kubectl import Kubectl
from herdkeeper_e2e.release.build import Release, write_release_chart
from herdkeeper_e2e.release.source import IMAGES, commit_epoch
from herdkeeper_e2e.stages import Progress, clock_text
from herdkeeper_e2e.tools_pod import Database, ToolsPod
from herdkeeper_e2e.waiting import wait_for

CLUSTER = "herdkeeper-registry"
NODE_IMAGE = "kindest/node:v1.34.0"
LABELS = "org.opencontainers.image."
STAGES = ("registry", "images", "push", "node image", "cluster", "operator", "database", "select")


@pytest.fixture
def progress() -> Iterator[Progress]:
    """The stages; how long each took is printed in the end."""
    progress = Progress(STAGES)
    yield progress
    print("; ".join(f"{name} {clock_text(seconds)}" for name, seconds in progress.durations.items()))


@pytest.fixture
def registry(progress: Progress) -> Iterator[ImageRegistry]:
    """An empty registry."""
    run([str(REPOSITORY / "e2e/bootstrap/engine.sh")], os.environ, say)
    with progress.stage("registry", "built from its Go module, in a container"):
        registry = ImageRegistry.start(progress.say)
    yield registry
    registry.remove()


@pytest.fixture
def on_its_own_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another cluster than the scenarios', without the engine's images in it; it goes in the end."""
    monkeypatch.setenv("HERDKEEPER_KIND_CLUSTER", CLUSTER)
    yield
    node = ["docker", "ps", "--all", "--filter", f"name={CLUSTER}-control-plane", "--format", "{{.Image}}"]
    images = run(node, os.environ, say).split()
    _cluster("down")
    for image in images:
        run(["docker", "image", "rm", image], os.environ, say)


def _cluster(what: str, **settings: str) -> None:
    run([str(REPOSITORY / "e2e/kind/cluster.sh"), what], {**os.environ, **settings}, say)


@pytest.mark.usefixtures("on_its_own_cluster")
def test_all_of_a_release_comes_from_the_registry_that_it_was_pushed_to(
    registry: ImageRegistry, progress: Progress, tmp_path: Path
) -> None:
    team = f"{registry.address}/team"
    with progress.stage("images", "make images, where their inputs changed"):
        run(["make", "--no-print-directory", "images"], os.environ, progress.say)
        for name in IMAGES:
            _says_what_it_is(f"herdkeeper/{name}:{VERSION}")
    with progress.stage("push", "make push: five images, the chart"):
        write_release_chart(REPOSITORY, Release(VERSION, team, commit_epoch(REPOSITORY)), tmp_path)
        run(["make", "--no-print-directory", "push", f"VERSION={VERSION}", f"REGISTRY={team}"], _into(tmp_path), progress.say)
    digests = yaml.safe_load((tmp_path / "digests.yaml").read_text())["images"]["digests"]

    with progress.stage("node image", "one like kind's own, to be pulled under kind's name"):
        run([str(REPOSITORY / "e2e/kind/stand-in/make.sh"), "herdkeeper/kind-node:stand-in"], os.environ, progress.say)
        node_image = registry.push("herdkeeper/kind-node:stand-in", NODE_IMAGE, progress.say)
        run(["docker", "image", "rm", "herdkeeper/kind-node:stand-in"], os.environ, progress.say)
    with progress.stage("cluster", "four nodes of the pulled image, none of which has an image of herdkeeper"):
        _cluster("up", HERDKEEPER_NODE_IMAGE=node_image, HERDKEEPER_IMAGE_TAG="none")
        environment = cluster_environment()
        nodes = run(["kind", "get", "nodes", "--name", CLUSTER], environment, progress.say).split()
        registry.serve(nodes, progress.say)

    kubectl = Kubectl("default", environment)
    with progress.stage("operator", "helm install of the chart that was pushed, images by their digests"):
        run(_install(team, tmp_path / "digests.yaml"), environment, progress.say)
    with progress.stage("database", "quickstart.yaml, until all of it is Ready"):
        kubectl.apply(REPOSITORY / "examples/quickstart.yaml")
        wait_for("the quickstart", lambda: all_ready(kubectl.list(QUICKSTART), 4), START, progress.say)
    with progress.stage("select", "a row is written and read, by a pod of the operator's image"):
        tools = ToolsPod(kubectl, "tools", Database.of(kubectl, "db", "bk", "flights"), f"{team}/herdkeeper/operator@{digests['operator']}")
        tools.start()
        tools.run("query", "CREATE TABLE cities (id INT PRIMARY KEY, name STRING)", "INSERT INTO cities (id, name) VALUES (1, 'Bergamo')")
        assert tools.query("SELECT name FROM cities WHERE id = 1") == [{"name": "Bergamo"}]

    pods = [*kubectl.list("pods"), *kubectl.in_namespace(OPERATOR_NAMESPACE).list("pods")]
    used = {container["image"] for pod in pods for container in pod["spec"]["containers"]}
    assert used == {f"{team}/herdkeeper/{name}@{digests[name]}" for name in IMAGES if name != "spark"}
    assert registry.pulled() == {f"team/herdkeeper/{name}" for name in IMAGES if name != "spark"}


def _says_what_it_is(image: str) -> None:
    """By its labels, and by the files that its licence asks for."""
    labels = json.loads(run(["docker", "image", "inspect", "--format", "{{json .Config.Labels}}", image], os.environ, say))
    told = {name.removeprefix(LABELS): value for name, value in labels.items() if name.startswith(LABELS)}
    assert told == {"title": image.partition(":")[0], "version": VERSION, "licenses": "Apache-2.0"}
    for file in ("LICENSE", "NOTICE"):
        shown = ["docker", "run", "--rm", "--entrypoint", "cat", image, f"/licenses/{file}"]
        assert run(shown, os.environ, say) == (REPOSITORY / file).read_text()


def _into(dist: Path) -> Mapping[str, str]:
    return {**os.environ, "HERDKEEPER_DIST": str(dist)}


def _install(team: str, digests: Path) -> list[str]:
    return [
        *("helm", "install", RELEASE, f"oci://{team}/herdkeeper/charts/herdkeeper", "--version", VERSION),
        *("--namespace", OPERATOR_NAMESPACE, "--create-namespace", "--wait", "--timeout", "5m", "--values", str(digests)),
    ]
