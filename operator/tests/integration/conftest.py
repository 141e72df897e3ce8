"""Fixtures of the integration tests: one real API server for the session with the CRDs applied, and a namespace of its own for each
test."""

from __future__ import annotations

import datetime
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client
from kubernetes.dynamic import DynamicClient
from stage import Stage
from unchanged_reads import counted_writes

from herdkeeper_e2e.audit_log import keep
from herdkeeper_e2e.control_plane import (
    HOME,
    REPOSITORY,
    ControlPlane,
    apply_crds,
    apply_rules,
    binaries,
    helm,
    make_namespace,
    rendered,
    running,
)
from herdkeeper_e2e.server_processes import jars_of

collect_ignore = [] if os.environ.get("CERT_MANAGER") else ["test_cert_manager.py"]


def pytest_configure(config: pytest.Config) -> None:
    """What the tests start is made before them: once for all workers, and while no test's time runs."""
    # the test's API server signs its own certificate: a warning at each request would hide real ones
    config.addinivalue_line("filterwarnings", "ignore:Unverified HTTPS request")
    # before there are workers, which collect the same tests also where midnight is between their beginnings
    os.environ.setdefault("TURN", str(datetime.datetime.now(datetime.UTC).date().toordinal()))
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        binaries()
        helm()
        jars_of("zookeeper")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever lies in this folder needs the control plane."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A running API server that knows the custom resources of crds/."""
    with running(tmp_path_factory.mktemp("control-plane")) as plane, counted_writes():
        apply_crds(plane, REPOSITORY / "crds")
        yield plane
        if plane.audit_log.exists():
            with plane.audit_log.open("rb") as log:
                keep(log, "integration")


@pytest.fixture(scope="session")
def dynamic(control_plane: ControlPlane) -> DynamicClient:
    """An administrator's client that knows the custom resources."""
    return control_plane.dynamic_client()


@pytest.fixture
def namespace(dynamic: DynamicClient) -> str:
    """A new namespace. It is left behind: without a controller manager nothing would empty it."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    dynamic.resources.get(api_version="v1", kind="Namespace").create(body={"metadata": {"name": name}})
    return name


@pytest.fixture
def stage(dynamic: DynamicClient, namespace: str) -> Stage:
    """An operator before anything is declared. A file whose stories begin later has a fixture of this name itself."""
    return Stage(dynamic, namespace)


@pytest.fixture
def clean_access(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The operator's ServiceAccount without any rights, before and after."""
    make_namespace(control_plane, HOME)
    yield control_plane
    with control_plane.api_client() as api:
        rbac = client.RbacAuthorizationV1Api(api)
        rbac.delete_cluster_role_binding("herdkeeper-system-herdkeeper")
        for binding in rbac.list_role_binding_for_all_namespaces(label_selector="app.kubernetes.io/name=herdkeeper-operator").items:
            rbac.delete_namespaced_role_binding(binding.metadata.name, binding.metadata.namespace)


@pytest.fixture
def charted(clean_access: ControlPlane) -> DynamicClient:
    """The operator's client, with the rights that the chart gives it and no others: a test that needs one that is missing fails."""
    apply_rules(clean_access, rendered())
    return clean_access.dynamic_client(token="operator-token")
