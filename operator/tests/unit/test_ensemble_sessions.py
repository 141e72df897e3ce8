"""Sessions with ensembles: one that does not answer holds up nobody who asks another one."""

from __future__ import annotations

import pytest

from herdkeeper.observe import ensembles as module
from herdkeeper.observe.ensembles import SILENT_SECONDS, EnsembleError, Ensembles


class Session:
    """Stands for KazooEnsemble: `tried` are the addresses that were connected to, `silent` those that did not answer."""

    tried: list[str]
    silent: set[str]

    def __init__(self, address: str) -> None:
        self.address = address
        self.connected = True

    def start(self) -> None:
        self.tried.append(self.address)
        if self.address in self.silent:
            raise EnsembleError(f"{self.address} did not answer")

    def stop(self) -> None:
        self.connected = False


@pytest.fixture
def session(monkeypatch):
    Session.tried, Session.silent = [], set()
    monkeypatch.setattr(module, "KazooEnsemble", Session)
    return Session


@pytest.fixture
def clock(monkeypatch):
    seconds = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: seconds[0])
    return seconds


def test_a_session_is_shared_and_made_anew_once_it_broke(session, clock):
    found = Ensembles()
    first = found.at("a")
    assert found.at("a") is first
    first.connected = False
    assert found.at("a") is not first
    assert session.tried == ["a", "a"]


def test_a_silent_ensemble_is_tried_by_one_and_told_to_the_others(session, clock):
    session.silent = {"a"}
    found = Ensembles()
    for _ in range(3):
        with pytest.raises(EnsembleError, match="a did not answer"):
            found.at("a")
    assert session.tried == ["a"]
    assert found.at("b").connected
    clock[0] += SILENT_SECONDS
    session.silent = set()
    assert found.at("a").connected
    assert session.tried == ["a", "b", "a"]


def test_an_ensemble_that_answered_again_is_not_held_for_silent(session, clock):
    session.silent = {"a"}
    found = Ensembles()
    with pytest.raises(EnsembleError):
        found.at("a")
    clock[0] += SILENT_SECONDS
    session.silent = set()
    found.at("a").stop()
    assert found.at("a").connected
