"""A follower that differs must not make itself the leader; one that a later Checkpoint found equal may again."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.leadership.promotion import promotion_bars
from herdkeeper.herddb.state.cluster import NodeTablespace
from herdkeeper.herddb.tablespace.verdicts import Verdict
from herdkeeper.planning.actions import BarPromotion
from herdkeeper.shared.unknown import Unknown

RECORD = TablespaceRecord("a-uuid", "flights", "n0", ("n0", "n1"), 1, 10_000)
MAY = NodeTablespace("flights", "a-uuid", "follower", True, (7, 90), None, barred=False)
BARRED = replace(MAY, barred=True, barred_until=(7, 12))
BARRED_EARLIER = replace(BARRED, barred_until=(7, 11))
UNDATED = replace(BARRED, barred_until=Unknown("the disk does not tell"))
BARRED_BY_OLDER_PROGRAM = replace(BARRED, barred_until=None)
OLDER_IMAGE = replace(MAY, barred=None)
BOOTING = replace(MAY, role="booting", ready=False)
ANOTHER = replace(MAY, uuid="another")
SILENT = Unknown("silence")

DIFFERENT = Verdict("n1", (7, 12), False, ("airports",), checkpoint="c")
AGAIN = replace(DIFFERENT, made_anew=True)
EQUAL = replace(DIFFERENT, equal=True, different_tables=())
BY_LEADER = replace(DIFFERENT, checkpoint=None, against_leader=True)
BAR = BarPromotion("db", "n1", "flights", "a-uuid", True, (7, 12), "it had other rows than the log at LSN 7,12 (Checkpoint c) in airports")
UNBAR = replace(BAR, barred=False, why="it was equal to the log at LSN 7,12 (Checkpoint c)")

LED_BY_IT = replace(RECORD, leader="n1")
OFF = replace(RECORD, replicas=("n0",))


@pytest.mark.parametrize(
    ("situation", "record", "copy", "verdict", "expected"),
    [
        ("it differs", RECORD, MAY, DIFFERENT, BAR),
        ("it differs and boots", RECORD, BOOTING, DIFFERENT, BAR),
        ("it differs, after a rebuild, and stays on the list", RECORD, MAY, AGAIN, BAR),
        ("it differs and knows", RECORD, BARRED, DIFFERENT, None),
        ("it differs at a later LSN than its node has noted", RECORD, BARRED_EARLIER, DIFFERENT, BAR),
        ("it differs, and its node has noted no LSN", RECORD, UNDATED, DIFFERENT, BAR),
        ("it differs, and its program notes no LSN", RECORD, BARRED_BY_OLDER_PROGRAM, DIFFERENT, None),
        ("it differs from the leader as noted", RECORD, BARRED_EARLIER, BY_LEADER, None),
        ("it differs and its image is an older one", RECORD, OLDER_IMAGE, DIFFERENT, None),
        ("it differs and does not answer", RECORD, SILENT, DIFFERENT, None),
        ("it differs and has no copy", RECORD, None, DIFFERENT, None),
        ("it differs and has a copy of another tablespace of that name", RECORD, ANOTHER, DIFFERENT, None),
        ("it differs and leads: it is relieved, and follows then", LED_BY_IT, replace(MAY, role="leader"), DIFFERENT, BAR),
        ("it differs, leads and knows", LED_BY_IT, replace(BARRED, role="leader"), DIFFERENT, None),
        ("it differs and is off the list: it stops", OFF, replace(MAY, role="stopped"), DIFFERENT, None),
        ("it is equal again", RECORD, BARRED, EQUAL, UNBAR),
        ("it is equal again: the bar that was read is lifted", RECORD, BARRED_EARLIER, EQUAL, replace(UNBAR, until=(7, 11))),
        ("it is equal again and leads", LED_BY_IT, replace(BARRED, role="leader"), EQUAL, UNBAR),
        ("it is equal again, and its program notes no LSN", RECORD, BARRED_BY_OLDER_PROGRAM, EQUAL, replace(UNBAR, until=None)),
        ("it is equal, and its node has noted no LSN", RECORD, UNDATED, EQUAL, None),
        ("it is equal", RECORD, MAY, EQUAL, None),
        ("it is equal and its image is an older one", RECORD, OLDER_IMAGE, EQUAL, None),
        ("it is equal and does not answer", RECORD, SILENT, EQUAL, None),
    ],
)
def test_who_must_not_make_itself_the_leader(situation, record, copy, verdict, expected):
    assert promotion_bars("db", record, {"n0": MAY, "n1": copy}, {"n1": verdict}) == ((expected,) if expected else ()), situation


def test_of_copies_of_which_nothing_is_known_none_is_barred_and_none_is_freed():
    for first, second in product((MAY, BARRED, OLDER_IMAGE, SILENT, None), repeat=2):
        assert promotion_bars("db", RECORD, {"n0": first, "n1": second}, {}) == ()


def test_each_copy_that_differs_is_barred():
    record = replace(RECORD, replicas=("n0", "n1", "n2"))
    verdicts = {"n2": replace(DIFFERENT, node="n2"), "n1": DIFFERENT, "n0": replace(EQUAL, node="n0")}
    assert promotion_bars("db", record, dict.fromkeys(record.replicas, MAY), verdicts) == (BAR, replace(BAR, node="n2"))
