"""The tutorials of docs/tutorials are carried out as they stand there, one after the other, on the test cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import say

from herdkeeper_e2e import cluster
from herdkeeper_e2e.kubectl import Kubectl
from herdkeeper_e2e.tutorials.carry_out import carry_out
from herdkeeper_e2e.tutorials.shell import Shell

NAMESPACE = "tutorial"
"""As the first tutorial says; the last one deletes it."""
PAGES = ("replicated-table", "lose-a-bookie", "everyday-work", "restore-to-yesterday")
NOT_A_READERS = ("PYTHONPATH", "PYSPARK_PYTHON", "KUBECONFIG")
"""Variables of the test run that a person does not have."""


@pytest.fixture(scope="module", autouse=True)
def nothing_before_and_nothing_left() -> Iterator[None]:
    """There is no namespace of an earlier run, and kubectl's context is as it was in the end."""
    environment = cluster.prepare(say)
    # an operator of an earlier image under the same tag would stay, since the tutorial's own command changes nothing then
    cluster.install_operator(environment, say)
    kubectl = Kubectl("default", environment)
    gone = ("delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=300s")
    kubectl.run(*gone, timeout_seconds=320)
    configuration = Path(environment["KUBECONFIG"])
    before = configuration.read_text()
    yield
    configuration.write_text(before)
    kubectl.run(*gone, timeout_seconds=320)


@pytest.mark.parametrize("page", PAGES)
def test_a_tutorial_does_what_it_says(page: str) -> None:
    shell = Shell(cluster.REPOSITORY, {name: value for name, value in os.environ.items() if name not in NOT_A_READERS})
    try:
        assert carry_out(cluster.REPOSITORY / f"docs/tutorials/{page}.md", shell, say) > 0
    finally:
        shell.close()
