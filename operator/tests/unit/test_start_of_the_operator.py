"""The operator's process waits for the API server: one that ended would be started again later and later."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from kubernetes.client import ApiException
from kubernetes.dynamic.exceptions import ResourceNotFoundError
from urllib3.exceptions import HTTPError

from herdkeeper.api import KINDS
from herdkeeper.process import main


class Discovery:
    """What kinds the API server serves, after it failed with each of some errors."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.asked: list[str] = []

    def get(self, api_version: str, kind: str) -> str:
        if self.errors:
            raise self.errors.pop(0)
        self.asked.append(kind)
        return kind


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(main.time, "sleep", found.append)
    return found


def test_an_api_server_that_does_not_answer_is_asked_again(pauses: list[float]) -> None:
    errors, client = [HTTPError("refused"), ApiException(status=503)], SimpleNamespace(resources=Discovery())

    def connect() -> SimpleNamespace:
        if errors:
            raise errors.pop(0)
        return client

    assert main.answering(connect) is client
    assert pauses == [main.AGAIN_SECONDS] * 2


def test_an_api_server_that_has_just_started_is_waited_for_until_it_serves_our_kinds(pauses: list[float]) -> None:
    discovery = Discovery(ResourceNotFoundError("No matches found"))
    main.answering(lambda: SimpleNamespace(resources=discovery))
    assert (discovery.asked, len(pauses)) == ([kind.KIND for kind in KINDS], 1)
