"""Who decides knows no client: a module is pure, unless its name, or its room, says that it looks or acts."""

from __future__ import annotations

import grimp
import pytest

GRAPH = grimp.build_graph("herdkeeper", include_external_packages=True)
IMPURE_ROOMS = ("clients", "sql", "tls", "engine", "process", "commands", "cli")
IMPURE_NAMES = ("observe", "execute")
RIM_OF_THE_PLUGIN = ("api_server", "session", "forward", "main", "completion", "table", "commands", "database", "sql_table", "sql_shell")
"""Modules of the room `plugin` that ask a cluster, or that import such ones. The rest of it is pure."""
CLIENTS = ("kubernetes", "kopf", "kazoo", "requests", "urllib3")


def is_pure(module: str) -> bool:
    _, *parts = module.split(".")
    if parts[:1] == ["plugin"] and parts[1:2] and parts[1] in RIM_OF_THE_PLUGIN:
        return False
    return bool(parts) and parts[0] not in IMPURE_ROOMS and not any(part.startswith(IMPURE_NAMES) for part in parts)


PURE = sorted(module for module in GRAPH.modules if module.startswith("herdkeeper.") and is_pure(module))


@pytest.mark.parametrize("module", PURE)
def test_a_module_that_decides_imports_none_that_looks_or_acts(module):
    imported = GRAPH.find_modules_directly_imported_by(module)
    assert sorted(each for each in imported if each in CLIENTS or (each.startswith("herdkeeper.") and not is_pure(each))) == []


def test_most_modules_are_pure():
    assert len(PURE) > 150
