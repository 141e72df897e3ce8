"""Events tell what is new in a status, once."""

from __future__ import annotations

import pytest
from situations import quickstart, with_status

from herdkeeper.engine.news import News, news_of
from herdkeeper.shared.reason import Reason

TABLESPACE = quickstart("Tablespace")


def entry(kind, status, reason, message="why"):
    return {
        "type": kind,
        "status": status,
        "reason": reason.value,
        "message": message,
        "lastTransitionTime": "2026-11-21T12:00:00Z",
        "observedGeneration": 1,
    }


def told(before, after):
    resource = with_status(TABLESPACE, conditions=[before]) if before is not None else TABLESPACE
    return news_of(resource, {"conditions": [after]})


READY = entry("Ready", "True", Reason.READY)
WAITING = entry("Ready", "False", Reason.WAITING_FOR_ZOOKEEPER)
DIFFERS = entry("ReplicasVerified", "False", Reason.REPLICA_DIFFERS)
VERIFIED = entry("ReplicasVerified", "True", Reason.READY)
NOT_KNOWN = entry("ReplicasVerified", "Unknown", Reason.READY)


@pytest.mark.parametrize(
    ("situation", "before", "after", "expected"),
    [
        ("the first Ready", None, READY, (News("ready changed", Reason.READY, "why", warning=False),)),
        ("Ready as before", READY, READY, ()),
        ("Ready with another message", READY, {**READY, "message": "3 members"}, ()),
        ("another reason", READY, WAITING, (News("ready changed", Reason.WAITING_FOR_ZOOKEEPER, "why", warning=False),)),
        ("a condition turned False", VERIFIED, DIFFERS, (News("ReplicasVerified is False", Reason.REPLICA_DIFFERS, "why", warning=True),)),
        ("it is False no more", DIFFERS, VERIFIED, (News("ReplicasVerified is True", Reason.READY, "why", warning=False),)),
        ("that nobody knows yet is no news", VERIFIED, NOT_KNOWN, ()),
        ("that it holds at first is no news", None, VERIFIED, ()),
    ],
)
def test_a_change_of_a_condition_is_told_once(situation, before, after, expected):
    assert told(before, after) == expected, situation
