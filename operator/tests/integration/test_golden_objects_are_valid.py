"""The golden files of test_build_golden, which pin what the operator makes, hold objects that a real API server takes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from kubernetes.dynamic import DynamicClient

from herdkeeper_e2e.control_plane import REPOSITORY

GOLDEN = sorted((REPOSITORY / "operator/tests/unit/golden").glob("*.yaml"))


@pytest.mark.parametrize("file", GOLDEN, ids=[file.stem for file in GOLDEN])
def test_the_api_server_takes_each_golden_object_and_knows_its_fields(file: Path, dynamic: DynamicClient, namespace: str) -> None:
    for document in yaml.safe_load_all(file.read_text()):
        resource = dynamic.resources.get(api_version=document["apiVersion"], kind=document["kind"])
        body = {**document, "metadata": {**document["metadata"], "namespace": namespace}}
        strict = [("fieldValidation", "Strict")]
        made = resource.create(body=body, namespace=namespace, dry_run="All", query_params=strict)
        assert made.metadata.name == document["metadata"]["name"]
