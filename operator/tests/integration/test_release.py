"""The files of a release of the commit that is checked out: made twice they are the same, and a real API server takes install.yaml."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import NotFoundError
from test_admission import TENANT, acting_as, allow, refusal, rule

from herdkeeper.api import KINDS
from herdkeeper_e2e.control_plane import HOME, REPOSITORY, ControlPlane, helm, make_namespace, running
from herdkeeper_e2e.release.build import Release, checksums, write_files
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

RELEASE = Release("0.2.0", "example.com/team", 1_700_000_000)
OPERATOR_LABELS = {"app.kubernetes.io/name": "herdkeeper-operator"}
CHART, EXAMPLES = "herdkeeper-0.2.0.tgz", "herdkeeper-examples-0.2.0.tgz"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    write_files(REPOSITORY, RELEASE, folder)
    return folder


def installed(dist: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all((dist / "install.yaml").read_text()) if document]


def test_it_has_what_people_install_from(dist: Path) -> None:
    names = {"RELEASE-NOTES.md", CHART, EXAMPLES, "install.yaml", "quickstart.yaml", *(wheel.name for wheel in wheels(Path()))}
    assert {file.name for file in dist.iterdir()} == names


def test_it_has_every_example(dist: Path) -> None:
    committed = subprocess.run(["git", "ls-files", "examples"], cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout.split()
    with tarfile.open(dist / EXAMPLES) as archive:
        assert sorted(archive.getnames()) == sorted(committed)


def wheels(dist: Path) -> list[Path]:
    return [dist / f"{project}-0.2.0-py3-none-any.whl" for project in ("herdkeeper", "herdkeeper_sql")]


def modules(wheel: Path) -> list[str]:
    return [name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("herdkeeper/")]


def test_each_wheel_has_the_license(dist: Path) -> None:
    for wheel in wheels(dist):
        names = {Path(name).name for name in zipfile.ZipFile(wheel).namelist()}
        assert {"LICENSE", "NOTICE"} <= names


def test_together_the_wheels_have_each_module_once(dist: Path) -> None:
    sources = REPOSITORY / "operator/src"
    committed = subprocess.run(["git", "ls-files", "herdkeeper"], cwd=sources, check=True, capture_output=True, text=True).stdout.split()
    assert sorted(name for wheel in wheels(dist) for name in modules(wheel)) == sorted(committed)


@pytest.mark.parametrize("projects", [["herdkeeper_sql"], ["herdkeeper", "herdkeeper_sql"]], ids=["alone", "beside the other wheel"])
def test_an_application_has_the_dialect_by_the_wheels_entry_point(dist: Path, tmp_path: Path, projects: list[str]) -> None:
    unpacked = [str(wheel) for wheel in wheels(dist) if wheel.name.partition("-")[0] in projects]
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--target", str(tmp_path), *unpacked]
    subprocess.run(pip, check=True)
    code = "from sqlalchemy import create_engine; print(create_engine('herddb+herdkeeper://a:b@c/d').dialect.import_dbapi().__file__)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    assert Path(run.stdout.strip()) == tmp_path / "herdkeeper/sql/dbapi/__init__.py"


def test_made_again_it_has_the_same_checksums(dist: Path, tmp_path: Path) -> None:
    write_files(REPOSITORY, RELEASE, tmp_path)
    assert checksums(tmp_path.iterdir()) == checksums(dist.iterdir())


def test_helm_makes_of_the_package_what_install_yaml_has(dist: Path) -> None:
    command = [str(helm()), "template", "herdkeeper", str(dist / CHART), "--namespace", HOME, "--kube-version", "v1.34.0"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    made = [document for document in yaml.safe_load_all(answer.stdout) if document]
    namespace, *rest = installed(dist)
    assert (namespace["kind"], namespace["metadata"]["name"]) == ("Namespace", HOME)
    assert [(each["kind"], each["metadata"]["name"]) for each in rest] == [(each["kind"], each["metadata"]["name"]) for each in made]
    assert [each.get("spec") for each in rest if each["kind"] != "Deployment"] == [
        each.get("spec") for each in made if each["kind"] != "Deployment"
    ]


def test_a_cluster_that_knows_nothing_of_herdkeeper_takes_install_yaml(dist: Path, tmp_path: Path) -> None:
    with running(tmp_path) as plane:
        dynamic = plane.dynamic_client()
        for document in installed(dist):
            resource = dynamic.resources.get(api_version=document["apiVersion"], kind=document["kind"])
            namespace = document["metadata"].get("namespace")
            resource.server_side_apply(body=document, name=document["metadata"]["name"], namespace=namespace, field_manager="kubectl")
        definitions = dynamic.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
        assert {item.metadata.name for item in definitions.get().items} == {f"{kind.PLURAL}.herdkeeper.io" for kind in KINDS}
        deployments = dynamic.resources.get(api_version="apps/v1", kind="Deployment")
        container = deployments.get(name="herdkeeper", namespace=HOME).spec.template.spec.containers[0]
        assert container.image == "example.com/team/herdkeeper/operator:0.2.0"


def test_the_operator_goes_without_its_kinds_and_comes_back_under_another_release(dist: Path, tmp_path: Path) -> None:
    """By the commands of docs/how-to/delete.md and docs/how-to/install.md. Two operators of one namespace would share a Lease."""
    (removal,) = re.findall(r"^kubectl (delete deployment.*)$", (REPOSITORY / "docs/how-to/delete.md").read_text(), re.MULTILINE)
    database = tmp_path / "database.yaml"
    database.write_text("apiVersion: herdkeeper.io/v1alpha1\nkind: ZooKeeperCluster\nmetadata: {name: zk}\nspec: {}\n")
    with running(tmp_path) as plane:
        for namespace in ("first", "second"):
            make_namespace(plane, namespace)

        def ends(program: Path, *words: str) -> int:
            return subprocess.run([str(program), "--kubeconfig", str(plane.kubeconfig), *words], check=False).returncode

        install = partial(why_not_installed, plane, dist)
        kubectl = helm().with_name("kubectl")
        assert ends(kubectl, "apply", "--server-side", "-f", str(dist / "install.yaml")) == 0
        assert ends(kubectl, "wait", "--for=condition=Established", "crd/zookeeperclusters.herdkeeper.io", "--timeout=60s") == 0
        assert ends(kubectl, "apply", "-f", str(database)) == 0
        assert ends(kubectl, *removal.split()) == 0
        dynamic = plane.dynamic_client()
        left = {(each["kind"], each["metadata"]["name"]) for each in installed(dist) if found(dynamic, each)}
        assert left == {("Namespace", HOME), *(("CustomResourceDefinition", f"{kind.PLURAL}.herdkeeper.io") for kind in KINDS)}
        assert ends(kubectl, "get", "zookeepercluster", "zk") == 0
        assert install("first", "--set", "watchNamespaces={first}") is not None
        assert install("first", "--set", "watchNamespaces={first}", "--take-ownership") is None
        assert install("second", "--set", "watchNamespaces={second}") is not None
        assert ends(helm(), "install", "other", str(dist / CHART), "--namespace", "first", "--set", "crds.install=false") == 1
        assert install("second", "--set", "watchNamespaces={second},crds.install=false") is None
        assert ends(kubectl, "get", "zookeepercluster", "zk") == 0


def why_not_installed(plane: ControlPlane, dist: Path, namespace: str, *words: str) -> str | None:
    """What Helm says where it does not install, or upgrade, a release in this namespace."""
    command = [str(helm()), "--kubeconfig", str(plane.kubeconfig), "upgrade", "--install", "keeper", str(dist / CHART)]
    answer = subprocess.run([*command, "--namespace", namespace, *words], capture_output=True, text=True, check=False)
    return answer.stderr if answer.returncode else None


def test_two_releases_act_in_namespaces_of_their_own_and_hinder_each_other_nowhere(dist: Path, tmp_path: Path) -> None:
    """As docs/how-to/install.md says. Admission policies are of the whole cluster, and know only the operator of their own release."""
    with running(tmp_path) as plane:
        for namespace in ("first", "second"):
            make_namespace(plane, namespace)
        install = partial(why_not_installed, plane, dist)
        beside = ("--set", "crds.install=false,watchNamespaces={second}")
        leave_binding_of(plane, "gone")
        assert install("first") is None, "nobody acts from a namespace that is gone"
        assert "the operator of the namespace first acts in all namespaces already" in str(install("second", *beside))
        assert install("first", "--set", "watchNamespaces={first}") is None
        both = ("--set", "crds.install=false,watchNamespaces={second,first}")
        assert "first acts in the namespace first already" in str(install("second", *both))
        assert "first acts in namespaces that this release would watch" in str(install("second", "--set", "crds.install=false"))
        assert install("second", *beside) is None
        assert "the operator of the namespace second acts in" in str(install("first", "--reset-values"))
        clusters = plane.dynamic_client().resources.get(api_version="herdkeeper.io/v1alpha1", kind="ZooKeeperCluster")
        body = {"apiVersion": "herdkeeper.io/v1alpha1", "kind": "ZooKeeperCluster", "metadata": {"name": "zk"}, "spec": {}}
        for namespace in ("first", "second"):
            clusters.create(body=body, namespace=namespace)
            allow(plane, namespace, TENANT, rule("herdkeeper.io", "zookeeperclusters/status", "patch"))

        def written(user: str, namespace: str) -> str | None:
            path = f"{clusters.path(name='zk', namespace=namespace)}/status"
            patch = {"status": {"readyMembers": 0}}
            client = acting_as(plane, user)
            return refusal(lambda: client.request("patch", path, body=patch, content_type="application/merge-patch+json"))

        for namespace in ("first", "second"):

            def in_force(namespace: str = namespace) -> bool | Pending:
                answer = written(TENANT, namespace)
                return "so you may not write a status" in str(answer) or Pending(str(answer))

            wait_for(f"the policies of {namespace}", in_force, Limit(60, 0.2))
        assert [written(f"system:serviceaccount:{namespace}:keeper", namespace) for namespace in ("first", "second")] == [None, None]


def leave_binding_of(plane: ControlPlane, namespace: str) -> None:
    """What is left of an operator whose namespace was deleted, without `helm uninstall`."""
    rights = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": f"{namespace}-keeper", "labels": OPERATOR_LABELS}}
    rules = [{"apiGroups": ["herdkeeper.io"], "resources": ["*"], "verbs": ["*"]}]
    subjects = [{"kind": "ServiceAccount", "name": "keeper", "namespace": namespace}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"{namespace}-keeper"}
    for kind, rest in (("ClusterRole", {"rules": rules}), ("ClusterRoleBinding", {"roleRef": role, "subjects": subjects})):
        resource = plane.dynamic_client().resources.get(api_version=rights["apiVersion"], kind=kind)
        resource.create(body={**rights, "kind": kind, **rest})


def found(dynamic: DynamicClient, document: dict[str, Any]) -> bool:
    resource = dynamic.resources.get(api_version=document["apiVersion"], kind=document["kind"])
    try:
        resource.get(name=document["metadata"]["name"], namespace=document["metadata"].get("namespace"))
    except NotFoundError:
        return False
    return True
