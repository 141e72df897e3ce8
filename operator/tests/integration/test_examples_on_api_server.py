"""Every shipped example on a real API server: accepted as it is, or refused with the message in its first line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import DynamicApiError

from herdkeeper_e2e.control_plane import REPOSITORY

EXAMPLES = REPOSITORY / "examples"
APPLIED = sorted(EXAMPLES.glob("*.yaml"))
REFUSED = sorted((EXAMPLES / "refused").glob("*.yaml"))
BY_CONDITION = "# refused by condition: "
BY_API_SERVER = "# refused: "
FIX = re.compile(r"\b(add|begin|create|give|keep|lower|raise|remove|revert|set|use|write)\b|Required value|supported values|needs spec")
"""What a message has if it tells what to do."""


def documents(text: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(text) if document]


def apply(dynamic: DynamicClient, namespace: str, document: dict[str, Any]) -> dict[str, Any]:
    """Server-side apply, as `kubectl apply --server-side` does. Unknown fields are errors, as kubectl makes them."""
    resource = dynamic.resources.get(api_version=document["apiVersion"], kind=document["kind"])
    answer = resource.server_side_apply(
        body=document,
        name=document["metadata"]["name"],
        namespace=namespace,
        field_manager="test",
        query_params=[("fieldValidation", "Strict")],
    )
    return dict(answer.to_dict())


@pytest.mark.parametrize("path", APPLIED, ids=lambda path: path.stem)
def test_an_example_is_accepted_and_a_second_apply_changes_nothing(path: Path, dynamic: DynamicClient, namespace: str) -> None:
    for document in documents(path.read_text()):
        first = apply(dynamic, namespace, document)
        if not document["apiVersion"].startswith("herdkeeper.io/"):
            continue  # the API server itself touches a claim again
        # stores the default of the status, which the first one reads and no operator has written here
        second = apply(dynamic, namespace, document)
        assert (second["spec"], second["metadata"]["generation"]) == (first["spec"], first["metadata"]["generation"])
        third = apply(dynamic, namespace, document)
        assert second["metadata"]["resourceVersion"] == third["metadata"]["resourceVersion"]


@pytest.mark.parametrize("path", [path for path in REFUSED if BY_CONDITION not in path.read_text()], ids=lambda path: path.stem)
def test_a_refused_example_gets_the_message_of_its_first_line(path: Path, dynamic: DynamicClient, namespace: str) -> None:
    message = path.read_text().splitlines()[0].removeprefix(BY_API_SERVER)
    *accepted, refused = documents(path.read_text())
    for document in accepted:
        apply(dynamic, namespace, document)
    with pytest.raises(DynamicApiError) as caught:
        apply(dynamic, namespace, refused)
    assert caught.value.status == 422
    assert message in (told := yaml.safe_load(caught.value.body)["message"])
    assert "secret@" not in told


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_a_refusal_tells_the_field_and_the_fix_and_no_pattern(path: Path) -> None:
    message = path.read_text().splitlines()[0]
    assert FIX.search(message)
    assert "should match" not in message


@pytest.mark.parametrize("path", [path for path in REFUSED if BY_CONDITION in path.read_text()], ids=lambda path: path.stem)
def test_what_is_refused_by_condition_is_accepted_by_the_api_server(path: Path, dynamic: DynamicClient, namespace: str) -> None:
    for document in documents(path.read_text()):
        assert apply(dynamic, namespace, document)["metadata"]["uid"]


def test_an_update_is_told_apart_from_a_set_of_resources() -> None:
    for path in REFUSED:
        names = [(document["kind"], document["metadata"]["name"]) for document in documents(path.read_text())]
        assert (len(set(names)) < len(names)) is ("\n# update\n" in path.read_text()), path.name


def test_an_unknown_field_is_refused_by_name(dynamic: DynamicClient, namespace: str) -> None:
    document = documents((EXAMPLES / "quickstart.yaml").read_text())[0]
    document["spec"]["replica"] = 3
    with pytest.raises(DynamicApiError) as caught:
        apply(dynamic, namespace, document)
    assert "spec.replica: field not declared in schema" in str(caught.value.body)
