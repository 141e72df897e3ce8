"""Tests against real servers: ZooKeeper and bookies as plain processes. The images' jars are made before any test's time runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from server_processes import jars_of


def pytest_configure(config: pytest.Config) -> None:
    """Once for all workers."""
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        jars_of("zookeeper")
        jars_of("bookkeeper")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever lies in this folder needs servers."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.integration)
