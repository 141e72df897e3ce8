"""One cluster, one operator and one quickstart for all scenarios, which run in the order of their files: each leaves the stack Ready,
the last one deletes it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from herdkeeper_e2e import built_images, cluster, sql_stack
from herdkeeper_e2e.audit_log import keep
from herdkeeper_e2e.diagnosis import explain, server_logs
from herdkeeper_e2e.kubectl import Kubectl
from herdkeeper_e2e.nycflights import data_directory
from herdkeeper_e2e.run_tests import LOG_FOLDER
from herdkeeper_e2e.sql_stack import TABLESPACE, SqlStack
from herdkeeper_e2e.tools_pod import Database, ToolsPod
from herdkeeper_e2e.waiting import Limit

NAMESPACE = os.environ.get("HERDKEEPER_E2E_NAMESPACE", "e2e")
"""Two runs side by side on one cluster need two."""
QUICKSTART, say = sql_stack.RESOURCES, sql_stack.say
TABLES = "airlines,airports,planes,weather"
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"
"""What many clusters ask of all pods: theirs and the scenarios' run under it."""
RESYNC_SECONDS = 5
START = Limit(900, 2)
LONGEST_SECONDS = int(os.environ.get("LONGEST_SECONDS", "5400"))
"""Of one scenario, its share of the setup included: a check of 20 minutes ends with the last fault's recovery."""
EXPLAINED_BY = pytest.StashKey[Kubectl]()
BEGAN = time.time()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever lies beside this file or below, but in unit/, needs the cluster."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and not item.path.is_relative_to(here / "unit"):
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.timeout(LONGEST_SECONDS))


@dataclass(frozen=True)
class Stack:
    """The quickstart, and the pod inside the cluster from which SQL is spoken."""

    kubectl: Kubectl
    tools: ToolsPod
    tablespace: str = TABLESPACE

    @property
    def sql(self) -> SqlStack:
        """The same, for who disturbs it."""
        return SqlStack(self.kubectl, self.tablespace)

    def wait_until_ready(self) -> None:
        """All four resources are Ready."""
        self.sql.wait_until_ready()


def ready_stack(kubectl: Kubectl, tools_image: str = built_images.OPERATOR) -> Stack:
    """The quickstart that was applied in a namespace, once it is Ready, with a pod of this image."""
    SqlStack(kubectl).wait_until_ready()
    return Stack(kubectl, ToolsPod(kubectl, "tools", Database.of(kubectl, "db", "bk", TABLESPACE), tools_image).start())


def goes_in_the_end(request: pytest.FixtureRequest, kubectl: Kubectl, *named: str) -> None:
    """Has what is named be deleted when the fixture ends that asks for it, last first. Said before it is made: so it goes, too, when the
    fixture can't be begun, and then not before that is reported, with what explains it."""
    request.addfinalizer(partial(kubectl.run, "delete", *named, "--ignore-not-found", timeout_seconds=600))


def begin_anew(kubectl: Kubectl) -> None:
    """Its namespace is empty, whatever an earlier run left, and takes restricted pods only."""
    kubectl.run("delete", "namespace", kubectl.namespace, "--ignore-not-found", "--timeout=300s", timeout_seconds=320)
    kubectl.run("create", "namespace", kubectl.namespace)
    kubectl.run("label", "namespace", kubectl.namespace, RESTRICTED)


@pytest.fixture(scope="session")
def kubectl(pytestconfig: pytest.Config) -> Kubectl:
    """kubectl in the scenarios' namespace, which begins empty, with the operator installed."""
    environment = cluster.prepare(say)
    cluster.install_operator(environment, say, RESYNC_SECONDS)
    found = Kubectl(NAMESPACE, environment)
    pytestconfig.stash[EXPLAINED_BY] = found
    begin_anew(found)
    return found


@pytest.fixture(scope="session")
def stack(kubectl: Kubectl) -> Stack:
    """The quickstart, Ready, with four tables of data."""
    kubectl.apply(cluster.REPOSITORY / "examples/quickstart.yaml")
    stack = ready_stack(kubectl)
    stack.tools.copy(data_directory(), "data")
    stack.tools.follow("loader", "--data", "/work/data", "--tables", TABLES, say=say)
    return stack


def policies(kubectl: Kubectl, order: str) -> None:
    """Has the nodes `enforce` NetworkPolicies, or `stop`."""
    subprocess.run([str(cluster.REPOSITORY / "e2e/kind/network-policies.sh"), order], check=True, env=kubectl.environment)


@pytest.fixture
def enforced(kubectl: Kubectl) -> Iterator[None]:
    """The nodes enforce NetworkPolicies until the test ends."""
    try:
        policies(kubectl, "enforce")
        yield
    finally:
        policies(kubectl, "stop")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """What explains a failure goes into its report, and beside the run's logs: conditions, pods, events, the logs of operator and servers.

    The configuration's stash is asked, not the test's arguments: a test whose fixture failed has none.
    """
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    found = item.config.stash.get(EXPLAINED_BY, None)
    if report.failed and found is not None:
        explained = explain(found, cluster.OPERATOR_NAMESPACE)
        report.sections.append(("what explains it", explained))
        if LOG_FOLDER in os.environ:
            beside = Path(os.environ[LOG_FOLDER]) / item.path.stem
            beside.with_suffix(".explained.txt").write_text(explained)
            beside.with_suffix(".servers.log").write_text(server_logs(found))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """What the operator asked the API server for is kept for `make rights-used`."""
    found = session.config.stash.get(EXPLAINED_BY, None)
    if found is not None:
        try:
            say(f"requests of the operator: {keep(cluster.audit_log(found.environment), 'scenarios', BEGAN)}")
        except cluster.CommandError as error:
            say(f"requests of the operator are not kept: {error}")
