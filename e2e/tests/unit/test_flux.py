"""What a Kustomization of Flux tells of a commit."""

from __future__ import annotations

import pytest

from herdkeeper_e2e.flux import HealthCheckError, ready
from herdkeeper_e2e.waiting import Pending

NEW = "c0ffee"


def kustomization(status: str, reason: str, *, applied: str | None = None, attempted: str = NEW):
    revisions = {"lastAttemptedRevision": f"main@sha1:{attempted}"} | ({"lastAppliedRevision": f"main@sha1:{applied}"} if applied else {})
    told = {"type": "Ready", "status": status, "reason": reason, "message": "of bk"}
    return {"metadata": {"name": "database"}, "status": {"conditions": [told], **revisions}}


def test_one_that_is_ready_at_the_commit_is_ready():
    assert ready(kustomization("True", "ReconciliationSucceeded", applied=NEW), NEW) is True


@pytest.mark.parametrize("applied", [None, "an-earlier-one"])
def test_one_that_is_ready_at_another_commit_or_has_not_written_at_which_is_waited_for(applied):
    assert isinstance(ready(kustomization("True", "ReconciliationSucceeded", applied=applied), NEW), Pending)


def test_a_failure_ends_the_waiting_only_at_the_commit_that_failed():
    with pytest.raises(HealthCheckError, match="of bk"):
        ready(kustomization("False", "HealthCheckFailed"), NEW)
    assert isinstance(ready(kustomization("False", "HealthCheckFailed", attempted="an-earlier-one"), NEW), Pending)


def test_a_dependency_that_is_not_ready_is_waited_for():
    assert ready(kustomization("False", "DependencyNotReady"), NEW) == Pending("database: DependencyNotReady: of bk")
