"""The launcher of the operator beside a played fleet: its constants are those that the operator reads."""

from __future__ import annotations

import pytest

from herdkeeper.clients import http, zookeeper, zookeeper_member
from herdkeeper.herddb.state import nodes
from herdkeeper.process import lease, node_streams
from herdkeeper_e2e.fleet.launcher import be_patient

CONSTANTS = [
    (http, "ANSWER_SECONDS"),
    (zookeeper, "ANSWER_SECONDS"),
    (zookeeper, "CONNECT_SECONDS"),
    (zookeeper_member, "ANSWER_SECONDS"),
    (zookeeper_member, "SESSION_SECONDS"),
    (nodes, "_SILENT_SECONDS"),
    (node_streams, "SILENCE_SECONDS"),
    (lease, "RENEW_DEADLINE_SECONDS"),
    (lease, "DURATION_SECONDS"),
]


@pytest.fixture(autouse=True)
def put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """All constants, after the test."""
    for module, name in CONSTANTS:
        monkeypatch.setattr(module, name, getattr(module, name))


def test_a_patient_operator_waits_for_each_silence_as_long_as_it_is_told() -> None:
    be_patient(1000.0)
    assert all(getattr(module, name) >= 1000.0 for module, name in CONSTANTS)


@pytest.mark.parametrize(("module", "name"), CONSTANTS, ids=[f"{module.__name__}.{name}" for module, name in CONSTANTS])
def test_a_constant_that_the_operator_has_no_more_is_not_set_in_vain(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> None:
    monkeypatch.delattr(module, name)
    with pytest.raises(AttributeError, match=f"has no {name}"):
        be_patient(1000.0)
