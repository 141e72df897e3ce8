"""Each example of what is refused gets the message that its first line promises: from the API server at once, or as a condition."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import begin_anew

from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.conditions import condition
from herdkeeper_e2e.kubectl import Kubectl, KubectlError
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

NAMESPACE = "e2e-refused"
RESOURCES = "zookeeperclusters,bookkeeperclusters,herddbclusters,tablespaces,checkpoints,replicationaudits,secrets,persistentvolumeclaims"
AT_ONCE, BY_CONDITION = "# refused: ", "# refused by condition: "
EXAMPLES = sorted((REPOSITORY / "examples/refused").glob("*.yaml"))


def promised(path: Path, mark: str) -> str | None:
    first = path.read_text().splitlines()[0]
    return first.removeprefix(mark) if first.startswith(mark) else None


def documents(path: Path) -> list[dict[str, Any]]:
    """All but the last are legitimate, and only what the last one is about: paused, so that no servers are started for them."""
    found = [document for document in yaml.safe_load_all(path.read_text()) if document]
    for document in found[:-1]:
        if document["apiVersion"].startswith("herdkeeper.io/"):
            document["metadata"].setdefault("annotations", {})["herdkeeper.io/paused"] = "true"
    return found


@pytest.fixture(scope="module")
def empty_namespace(kubectl: Kubectl) -> Iterator[Kubectl]:
    """A namespace without servers, so that whatever is applied here touches nothing that runs."""
    own = kubectl.in_namespace(NAMESPACE)
    begin_anew(own)
    yield own
    kubectl.run("delete", "namespace", NAMESPACE, "--wait=false")


def is_past(second: int) -> bool | Pending:
    """Whether a later second has begun than this one (Unix time)."""
    return True if time.time() >= second + 1 else Pending("the same one")


def clean(kubectl: Kubectl) -> None:
    kubectl.run("delete", RESOURCES, "--all", "--timeout=300s", timeout_seconds=310)


@pytest.mark.parametrize("path", [path for path in EXAMPLES if promised(path, AT_ONCE)], ids=lambda path: path.stem)
def test_the_api_server_refuses_it_with_the_promised_message(empty_namespace: Kubectl, path: Path) -> None:
    *before, refused = documents(path)
    try:
        for document in before:
            empty_namespace.apply(document)
        with pytest.raises(KubectlError) as error:
            empty_namespace.apply(refused)
    finally:
        clean(empty_namespace)
    assert str(promised(path, AT_ONCE)) in " ".join(error.value.said.split())


@pytest.mark.parametrize("path", [path for path in EXAMPLES if promised(path, BY_CONDITION)], ids=lambda path: path.stem)
def test_the_operator_says_so_in_the_condition_ready_and_makes_nothing(empty_namespace: Kubectl, path: Path) -> None:
    *before, refused = documents(path)
    kind, name = refused["kind"], refused["metadata"]["name"]

    def refusal() -> str | Pending:
        item = empty_namespace.get(kind, name)
        ready = condition(item, "Ready") if item else None
        if ready is None or ready["reason"] != "InvalidSpec":
            return Pending(f"Ready is {ready}")
        return str(ready["message"])

    try:
        for document in before:
            empty_namespace.apply(document)
            born = int(time.time())  # the older one of two resources keeps a name, and ages are whole seconds
            wait_for("another second", partial(is_past, born), Limit(3, 0.1))
        empty_namespace.apply(refused)
        message = wait_for("the refusal", refusal, Limit(300, 0.5))
        made = empty_namespace.list("statefulsets,jobs,persistentvolumeclaims", f"herdkeeper.io/owner-name={name}")
    finally:
        clean(empty_namespace)
    assert str(promised(path, BY_CONDITION)) in message
    assert made == []
