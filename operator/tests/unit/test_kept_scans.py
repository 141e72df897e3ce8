"""What ledgers looked like a moment ago is enough to wait by, and nothing is done by it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from situations import quickstart, with_status
from test_plan_bookkeeper import HEALTHY, JOBS_IMAGE
from test_plan_drain_pause import SCAN, seen, told

from herdkeeper.bookkeeper.observe.ledgers import ScanRequest, cache_scan, recent_scan
from herdkeeper.bookkeeper.plan.bookies import plan_bookkeeper
from herdkeeper.clients.answer_cache import AnswerCache
from herdkeeper.codecs.bookkeeper.placement import PlacementRule
from herdkeeper.shared.unknown import Unknown

RULE = PlacementRule({}, 2, 1)
DATABASE = quickstart("HerdDBCluster")
ASKED = ScanRequest(("bk-bookie-3-dddddd",), (DATABASE,), RULE)
SLOW = replace(SCAN, seconds=2.0)


class Clock:
    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.mark.parametrize(
    ("situation", "scan", "asked", "later", "age"),
    [
        ("a moment later", SLOW, ASKED, 39.0, 39.0),
        ("twenty times as long as reading took", SLOW, ASKED, 40.0, None),
        ("a minute at most", replace(SLOW, seconds=30.0), ASKED, 60.0, None),
        ("reading took no time", replace(SLOW, seconds=0.0), ASKED, 0.001, None),
        ("another bookie leaves as well", SLOW, replace(ASKED, bookies=("another",)), 1.0, None),
        ("the rule has changed", SLOW, replace(ASKED, rule=replace(RULE, minimum=3)), 1.0, None),
        ("it could not be read", Unknown("silence"), ASKED, 1.0, None),
    ],
)
def test_a_scan_is_kept_for_a_while_that_depends_on_how_long_it_took(situation, scan, asked, later, age):
    kept = AnswerCache(clock := Clock())
    assert cache_scan(kept, "zk/ledgers", ASKED, scan) == scan
    clock.seconds += later
    found = recent_scan(kept, "zk/ledgers", asked)
    assert (None if found is None else found.age_seconds) == age, situation
    assert recent_scan(kept, "zk/others", asked) is None


def test_the_databases_of_a_kept_scan_are_those_of_now():
    kept, moved_on = AnswerCache(), with_status(DATABASE, nodes=3)
    cache_scan(kept, "zk/ledgers", ASKED, SLOW)
    found = recent_scan(kept, "zk/ledgers", replace(ASKED, databases=(moved_on,)))
    assert found is not None
    assert found.databases == (moved_on,)


def test_a_drain_waits_by_a_kept_scan_and_does_nothing_by_it():
    old = replace(SLOW, age_seconds=10.0)
    waiting = plan_bookkeeper(told(seen(scan=old), before=seen()), JOBS_IMAGE)
    assert (waiting.actions, waiting.needs_ledgers) == ((), False)
    assert waiting.requeue_after_seconds == pytest.approx(30.0), "its age counts"
    acting = plan_bookkeeper(seen(metadata=HEALTHY, scan=old), JOBS_IMAGE)
    assert acting.actions
    assert acting.needs_ledgers
    assert not plan_bookkeeper(seen(metadata=HEALTHY), JOBS_IMAGE).needs_ledgers
