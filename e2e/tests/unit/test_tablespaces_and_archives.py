"""What a Tablespace's status says of whether it is ready, and how far its log is archived."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from herdkeeper_e2e.archives import archive_at
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.tablespaces import NeverReadyError, readiness
from herdkeeper_e2e.waiting import Pending

MOMENT = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def tablespace(condition: Object, **status: object) -> Object:
    conditions = [{"observedGeneration": 2, "message": "so", **condition}]
    return {"kind": "Tablespace", "metadata": {"name": "made", "generation": 2}, "status": {"conditions": conditions, **status}}


def archived(current_at: datetime | None, status: str = "True") -> Object:
    archive = {} if current_at is None else {"currentAt": current_at.isoformat()}
    return tablespace({"type": "LogArchived", "status": status, "reason": "Archived"}, archive=archive)


def test_one_that_is_ready_is_the_answer() -> None:
    made = tablespace({"type": "Ready", "status": "True", "reason": "Settled"})
    assert readiness("made", made) is made


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (None, "it does not exist"),
        (tablespace({"type": "Ready", "status": "False", "reason": "Restoring"}), "Restoring: so"),
        (tablespace({"type": "Ready", "status": "True", "reason": "Settled", "observedGeneration": 1}), "has not seen"),
    ],
)
def test_one_that_may_become_ready_is_waited_for(item: Object | None, why: str) -> None:
    answer = readiness("made", item)
    assert isinstance(answer, Pending)
    assert answer.reason.startswith("tablespace made: ")
    assert why in answer.reason


@pytest.mark.parametrize("reason", ["RestoreFailed", "InvalidSpec"])
def test_one_that_never_becomes_ready_is_not_waited_for(reason: str) -> None:
    with pytest.raises(NeverReadyError, match=f"tablespace made: {reason}: so"):
        readiness("made", tablespace({"type": "Ready", "status": "False", "reason": reason}))


def test_an_archive_has_a_moment_once_it_is_current_at_a_later_one() -> None:
    late, early = archived(MOMENT), archived(MOMENT + timedelta(seconds=1))
    assert isinstance(archive_at(late, MOMENT), Pending)
    assert archive_at(early, MOMENT) is early


@pytest.mark.parametrize("item", [None, archived(None), archived(MOMENT + timedelta(hours=1), status="False")])
def test_an_archive_that_is_not_said_to_be_current_is_waited_for(item: Object | None) -> None:
    assert isinstance(archive_at(item, MOMENT), Pending)
