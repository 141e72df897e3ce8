"""It is told before the log's retention is over that somebody has not had it yet."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import REGISTRY
from situations import with_metadata, with_spec, with_status
from test_plan_archive import ARCHIVED, HELD, PROGRESS
from test_plan_log_pin import FORGETFUL, KEEPS, NO_INSTANCE, SEEN, UUID, checkpoint

from herdkeeper.api import Tablespace
from herdkeeper.api.checkpoint import Lsn
from herdkeeper.api.tablespace import StreamStatus, TablespaceLog
from herdkeeper.codecs.herddb.ledgers import LedgerList
from herdkeeper.engine.gauges.logs import forget_log, show_log
from herdkeeper.herddb.log.in_time import log_standings, seconds_to_stalled_stream, seconds_to_turn
from herdkeeper.herddb.log.seen import ArchiveObserved, SeenStream
from herdkeeper.herddb.log.status_readers import log_released, log_used_in_time, stream_fields
from herdkeeper.herddb.state.cluster import NodeTablespace, RecordAbsent, RetainedLog
from herdkeeper.herddb.tablespace.plan import plan_tablespace
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.herddb.tablespace.status import summarize_tablespace
from herdkeeper.protocol.log_pin import StreamPin
from herdkeeper.protocol.verification import alone
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

NOW = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
RETENTION = 48
"""Hours, as the quickstart has it by default."""
BOTH = with_spec(ARCHIVED, log=TablespaceLog(keep_until_checkpoint=True, archive=ARCHIVED.spec.log.archive))


def opened(*hours_ago: float, first: int = 3, of: int = 3) -> LedgerList:
    """Ledgers `first`, `first` + 1 … that were opened so long ago; `of` is the first one that the log ever had."""
    moments = tuple(int((NOW.timestamp() - hours * 3600) * 1000) for hours in hours_ago)
    return LedgerList(tuple(range(first, first + len(moments))), moments, of, len(moments))


def weighed(tablespace: Tablespace, seen: TablespaceObserved) -> TablespaceObserved:
    """As plan and status get it."""
    return replace(seen, standings=log_standings(replace(seen, tablespace=tablespace)))


def told(tablespace: Tablespace, ledgers: Any, *checkpoints: Any, archive: Any = None) -> tuple[Any, ...]:
    """The condition's status, reason and message; nothing where there is none."""
    seen = replace(SEEN, ledgers=ledgers, checkpoints=checkpoints, archive=ArchiveObserved(archive, None, now=NOW.timestamp()), now=NOW)
    return tuple(
        part
        for each in log_used_in_time(log_standings(replace(seen, tablespace=tablespace))).values()
        for part in (each.status, each.reason, each.message)
    )


OPEN_SINCE_3 = {"restart_lsn": Lsn(ledger_id=3, entry_id=8), "open_transactions": 1}
IN_4 = checkpoint("a", (4, 2), lsn_timestamp="2026-11-18T21:00:00Z")
LATE_IN_4 = checkpoint("a", (4, 2), lsn_timestamp="2026-11-19T21:00:00Z")
FAILED = checkpoint("a", (3, 1), phase="Failed")
ALONE = checkpoint("a", (4, 2), verified=alone("n1:9845"))
LOST = checkpoint("lost", (9, 0))
DRILLED = with_metadata(IN_4, labels={names.COMPONENT_LABEL: names.DRILL_COMPONENT})


@pytest.mark.parametrize(
    ("situation", "tablespace", "ledgers", "checkpoints", "progress", "reason", "words"),
    [
        ("nobody asks for anything", FORGETFUL, opened(100, 60, 1), (), None, None, ""),
        ("a drill made its own Checkpoint", FORGETFUL, opened(100, 60, 1), (DRILLED,), None, None, ""),
        ("it is of the ledger that is written, however old", FORGETFUL, opened(2000, 1900), (IN_4,), None, Reason.USED_IN_TIME, "nothing"),
        ("its ledger has just ended", FORGETFUL, opened(90, 80, 1), (IN_4,), None, Reason.USED_IN_TIME, "nothing"),
        ("a moment before three quarters", FORGETFUL, opened(90, 80, 35.99), (IN_4,), None, Reason.USED_IN_TIME, "nothing"),
        ("three quarters", FORGETFUL, opened(90, 80, 36), (IN_4,), None, Reason.RETENTION_NEARS, "it is released at 2026-11-21T00:00:00Z"),
        ("and who to ask", FORGETFUL, opened(90, 80, 36), (IN_4,), None, Reason.RETENTION_NEARS, "a of 2026-11-18T21:00:00Z, and"),
        ("what to do", FORGETFUL, opened(90, 80, 36), (IN_4,), None, Reason.RETENTION_NEARS, "make a Checkpoint, or see why"),
        ("the newest one counts", FORGETFUL, opened(90, 80, 36), (IN_4, checkpoint("b", (5, 0))), None, Reason.USED_IN_TIME, "nothing"),
        (
            "a transaction that was open there began in the ledger before",
            FORGETFUL,
            opened(90, 40, 1),
            (checkpoint("a", (4, 2), **OPEN_SINCE_3),),
            None,
            Reason.RETENTION_NEARS,
            "continues from LSN 3,8",
        ),
        ("it is over, but the ledger is there", FORGETFUL, opened(90, 80, 48), (IN_4,), None, Reason.RETENTION_OVER, "at any moment"),
        ("it is gone", FORGETFUL, opened(90, 80, first=5), (IN_4,), None, Reason.LOG_GONE, "into a new Tablespace"),
        ("and what to do first", FORGETFUL, opened(90, 80, first=5), (IN_4,), None, Reason.LOG_GONE, "make a Checkpoint now; it starts"),
        ("all failed so far", FORGETFUL, opened(90, 37), (FAILED,), None, Reason.RETENTION_NEARS, "no Ch"),
        ("the log has lost its beginning", FORGETFUL, opened(9, 3, of=1), (FAILED,), None, Reason.LOG_GONE, "a follower's tables"),
        ("a leader's clock is behind", FORGETFUL, opened(90, 20, 47), (LATE_IN_4,), None, Reason.USED_IN_TIME, ""),
        ("and one is years ahead", FORGETFUL, opened(90, 80, -90000, 36), (IN_4,), None, Reason.RETENTION_NEARS, "2026-11-21T00"),
        ("the log lost the time of the newest one", FORGETFUL, opened(90, 40), (IN_4, LOST), None, Reason.USED_IN_TIME, ""),
        ("and of the only one", FORGETFUL, opened(90, 36), (LOST,), None, Reason.RETENTION_NEARS, "no Checkpoint"),
        ("the log has no ledger yet", KEEPS, LedgerList((), (), None), (), None, Reason.USED_IN_TIME, ""),
        ("it is kept, and nobody makes one", KEEPS, opened(90, 37), (), None, Reason.RETENTION_NEARS, "it is kept beyond retention"),
        ("it is kept, and that is long ago", KEEPS, opened(90, 80, 48), (IN_4,), None, Reason.RETENTION_OVER, "fills the bookies: make"),
        ("one follower alone compared it", KEEPS, opened(90, 37), (ALONE,), None, Reason.RETENTION_NEARS, "nothing (its status.verified)"),
        ("the archive keeps up", ARCHIVED, opened(90, 80, 36, 20), (), PROGRESS, Reason.USED_IN_TIME, "nothing"),
        ("the archive is behind", ARCHIVED, opened(90, 80, 37, 36), (), PROGRESS, Reason.RETENTION_NEARS, "archived up to LSN 5,10"),
        ("an archive that has not begun", ARCHIVED, opened(90, 37, 20), (), None, Reason.RETENTION_NEARS, "nothing of the log is archived"),
        ("the archive has what the next Checkpoint needs", ARCHIVED, opened(9, 3, first=5), (IN_4,), PROGRESS, Reason.USED_IN_TIME, ""),
        (
            "the archive begins behind what the next Checkpoint needs",
            ARCHIVED,
            opened(90, 80, 36, 20),
            (IN_4,),
            replace(PROGRESS, held=replace(HELD, begins_log=False, first=(5, 0))),
            Reason.RETENTION_NEARS,
            "the newest verified Checkpoint is a",
        ),
        ("both are kept, and both are late", BOTH, opened(90, 80, 60, 50), (IN_4,), PROGRESS, Reason.RETENTION_OVER, "; and the log is"),
    ],
)  # fmt: skip
def test_it_is_told_when_three_quarters_of_the_retention_are_over_for_what_somebody_needs(
    situation: str, tablespace: Tablespace, ledgers: LedgerList, checkpoints: Any, progress: Any, reason: Reason | None, words: str
) -> None:
    found = told(tablespace, ledgers, *checkpoints, archive=progress)
    if reason is None:
        assert found == (), situation
        return
    status, why, message = found
    assert (status, why) == ("True" if reason is Reason.USED_IN_TIME else "False", reason), (situation, message)
    assert words in message, (situation, message)


@pytest.mark.parametrize(
    "unread",
    [
        {"ledgers": Unknown("silence")},
        {"archive": ArchiveObserved(PROGRESS, unread=Unknown("silence"))},
        {"archive": ArchiveObserved(Unknown("silence"))},
    ],
    ids=["the list of ledgers", "a Checkpoint, which may be the newest", "how far the archive is"],
)
def test_what_could_not_be_read_is_unknown_and_no_answer(unread: dict[str, Any]) -> None:
    seen = replace(SEEN, **{"ledgers": opened(90, 80, 36), "now": NOW, **unread})
    standings = log_standings(replace(seen, tablespace=BOTH))
    (condition,) = log_used_in_time(standings).values()
    assert (condition.status, condition.reason, condition.message) == ("Unknown", Reason.UNREADABLE, "silence")
    assert seconds_to_turn(standings, NOW) is None


def test_a_checkpoint_of_another_cluster_is_none_of_the_log_and_without_the_cluster_nobody_knows() -> None:
    other = checkpoint("b", (5, 0), manifest=f"another/{UUID}/manifests/x.json")
    _, reason, message = told(FORGETFUL, opened(90, 80, 36), IN_4, other)
    assert (reason, "the newest verified Checkpoint is a of" in message) == (Reason.RETENTION_NEARS, True)
    seen = replace(SEEN, ledgers=opened(90, 80, 36), now=NOW, instance_id=NO_INSTANCE)
    for tablespace, checkpoints in ((KEEPS, ()), (FORGETFUL, (IN_4,))):
        (condition,) = log_used_in_time(log_standings(replace(seen, tablespace=tablespace, checkpoints=checkpoints))).values()
        assert (condition.status, condition.reason) == ("Unknown", Reason.UNREADABLE)
        assert "the BookKeeperCluster bk does not exist" in condition.message
    behind = replace(seen, ledgers=opened(90, 80, 37, 36), archive=ArchiveObserved(PROGRESS))
    (archived,) = log_used_in_time(log_standings(replace(behind, tablespace=ARCHIVED))).values()
    assert archived.reason is Reason.RETENTION_NEARS, "an archive needs the log without a Checkpoint"


def test_a_tablespace_of_which_there_is_no_log_yet_has_no_such_condition() -> None:
    assert log_standings(replace(SEEN, tablespace=KEEPS, ledgers=None)) == ()
    assert log_standings(replace(SEEN, tablespace=KEEPS, ledgers=opened(90, 80), record=RecordAbsent())) == ()


@pytest.mark.parametrize(
    ("situation", "ledgers", "hours"),
    [
        ("when three quarters will be over", opened(90, 80, 6), 30),
        ("then when all of it will be", opened(90, 80, 40), 8),
        ("after that time changes nothing", opened(90, 80, 50), None),
        ("nor while the ledger is written", opened(90, 80), None),
        ("nor when it is gone", opened(9, 8, first=5), None),
    ],
)
def test_it_is_looked_at_again_when_the_answer_turns(situation: str, ledgers: LedgerList, hours: float | None) -> None:
    seen = replace(SEEN, ledgers=ledgers, checkpoints=(IN_4,), now=NOW)
    seconds = seconds_to_turn(log_standings(replace(seen, tablespace=KEEPS)), NOW)
    assert seconds == (None if hours is None else hours * 3600 + 1), situation


def test_a_settled_tablespace_is_looked_at_again_at_that_time() -> None:
    turns = replace(SEEN, ledgers=opened(90, 80, 6), checkpoints=(IN_4,), now=NOW)
    settled = with_spec(FORGETFUL, replicas=1)
    assert (
        plan_tablespace(replace(weighed(settled, replace(turns, checkpoints=())), tablespace=settled), "spark").requeue_after_seconds
        is None
    )
    assert plan_tablespace(replace(weighed(settled, turns), tablespace=settled), "spark").requeue_after_seconds == 30 * 3600 + 1


def test_the_status_has_the_condition_beside_the_others() -> None:
    seen = replace(SEEN, ledgers=opened(90, 80, 36), checkpoints=(IN_4,), now=NOW)
    assert summarize_tablespace(weighed(FORGETFUL, seen)).conditions["LogUsedInTime"].reason is Reason.RETENTION_NEARS
    assert "LogUsedInTime" not in summarize_tablespace(weighed(FORGETFUL, replace(seen, checkpoints=()))).conditions


def test_gauges_tell_when_the_retention_ends_and_go_with_what_they_tell_of() -> None:
    labels = {"namespace": "demo", "tablespace": "flights"}

    def shown() -> tuple[float | None, ...]:
        ends = [
            REGISTRY.get_sample_value("herdkeeper_log_retention_ends_timestamp_seconds", {**labels, "needed_by": by})
            for by in ("checkpoint", "archive")
        ]
        return REGISTRY.get_sample_value("herdkeeper_log_used_in_time", labels), *ends

    def show(ledgers: Any, tablespace: Tablespace = BOTH) -> tuple[float | None, ...]:
        archive = ArchiveObserved(PROGRESS)
        show_log(
            tablespace, log_standings(replace(SEEN, tablespace=tablespace, ledgers=ledgers, checkpoints=(IN_4,), archive=archive, now=NOW))
        )
        return shown()

    end = (NOW + datetime.timedelta(hours=RETENTION - 40)).timestamp()
    assert show(opened(90, 80, 40)) == (0, end, None)
    assert show(opened(90, 80, 40, 1)) == (0, end, (NOW + datetime.timedelta(hours=RETENTION - 1)).timestamp())
    assert show(opened(90, 80)) == (1, None, None)
    assert show(opened(90, first=5)) == (0, None, None), "what is gone ends no more"
    assert show(Unknown("silence")) == (None, None, None)
    show(opened(90, 80, 40))
    forget_log(ObjectKey("demo", "flights"))
    assert shown() == (None, None, None)


def test_the_uuid_of_another_tablespace_s_checkpoint_is_no_base() -> None:
    status, reason, message = told(FORGETFUL, opened(90, 37), checkpoint("a", (3, 1), "another"))
    assert (status, reason) == ("False", Reason.RETENTION_NEARS)
    assert "no Checkpoint is verified yet" in message
    assert UUID != "another"


def stream(name: str, lsn: tuple[int, int] | None, hours_ago: float, hours: float = 72) -> SeenStream:
    """One whose pin was written so long ago, and counts for so long."""
    pin = None if lsn is None else StreamPin(lsn, int(hours * 3600))
    return SeenStream(name, pin, NOW - datetime.timedelta(hours=hours_ago))


@pytest.mark.parametrize(
    ("situation", "streams", "ledgers", "reason", "words"),
    [
        ("it reads what is written", (stream("audit", (5, 3), 0),), opened(90, 80, 47), Reason.USED_IN_TIME, "nothing"),
        ("its ledger has ended long ago", (stream("audit", (4, 3), 20),), opened(90, 80, 40), Reason.RETENTION_NEARS, "LSN 4,3 on;"),
        ("and what becomes of it", (stream("audit", (4, 3), 20),), opened(90, 80, 40), Reason.RETENTION_NEARS, "til 2026-11-22T16:00:00Z"),
        ("it has read nothing", (stream("audit", (-1, -1), 1),), opened(90, 50, 40), Reason.RETENTION_OVER, "audit has read nothing"),
        ("nobody can read its pin", (stream("audit", None, 1),), opened(90, 50), Reason.RETENTION_OVER, "znode stream-audit is malf"),
        ("it came too late", (stream("audit", (2, 0), 1),), opened(90, 50), Reason.LOG_GONE, "LogTruncatedError"),
        ("of several one is late", (stream("a", (5, 3), 0), stream("b", (3, 0), 0)), opened(90, 40, 1), Reason.RETENTION_NEARS, "stream b"),
        ("it was abandoned", (stream("audit", (3, 0), 73),), opened(90, 80, 50), None, ""),
    ],
)
def test_it_is_told_that_the_log_is_kept_for_a_stream(
    situation: str, streams: Any, ledgers: LedgerList, reason: Reason | None, words: str
) -> None:
    seen = replace(SEEN, ledgers=ledgers, streams=streams, now=NOW)
    found = list(log_used_in_time(log_standings(seen)).values())
    assert [(each.reason, words in each.message) for each in found] == ([] if reason is None else [(reason, True)]), (situation, found)


def test_pins_of_streams_that_can_t_be_read_are_unknown_where_somebody_needs_the_log() -> None:
    seen = replace(SEEN, ledgers=opened(90, 80, 40), streams=Unknown("silence"), now=NOW)
    assert log_standings(replace(seen, tablespace=KEEPS)) == Unknown("silence")
    assert log_standings(seen) == ()


def test_the_status_has_the_streams_with_the_one_first_that_needs_most_and_nothing_that_changes_while_they_move() -> None:
    streams = (stream("late", (4, 7), 2), stream("gone", (3, 7), 100), stream("new", (-1, -1), 0.5), stream("reads", (6, 1), 0.1))
    told = {"name": "reads", "state": "Moves"}
    assert stream_fields(replace(SEEN, streams=(*streams, stream("odd", None, 1)), now=NOW))["streams"] == [
        {"name": "odd", "state": "Unreadable", "standsSince": "2026-11-20T11:00:00Z"},
        {"name": "new", "state": "Stands", "standsSince": "2026-11-20T11:30:00Z", "countsUntil": "2026-11-23T11:30:00Z"},
        {
            "name": "gone",
            "state": "Abandoned",
            "standsSince": "2026-11-16T08:00:00Z",
            "countsUntil": "2026-11-19T08:00:00Z",
            "lsn": {"ledgerId": 3, "entryId": 7},
        },
        {
            "name": "late",
            "state": "Stands",
            "standsSince": "2026-11-20T10:00:00Z",
            "countsUntil": "2026-11-23T10:00:00Z",
            "lsn": {"ledgerId": 4, "entryId": 7},
        },
        told,
    ]
    moved = replace(SEEN, streams=(stream("reads", (7, 99), 0),), now=NOW)
    assert stream_fields(moved)["streams"] == [told]
    assert summarize_tablespace(moved).fields["streams"] == [told]


def test_what_was_known_of_streams_stays_while_nobody_can_look() -> None:
    before = with_status(FORGETFUL, streams=(StreamStatus(name="audit", state="Moves"),))
    assert stream_fields(replace(SEEN, tablespace=before, streams=Unknown("silence")))["streams"] == [{"name": "audit", "state": "Moves"}]


@pytest.mark.parametrize(
    ("situation", "hours_ago", "seconds"),
    [
        ("when it will stand", 0, 601),
        ("when it will be abandoned", 1, 71 * 3600 + 1),
        ("not once it is", 73, None),
    ],
)
def test_a_stream_that_moves_no_more_is_told_of_without_an_event(situation: str, hours_ago: float, seconds: float | None) -> None:
    assert seconds_to_stalled_stream(replace(SEEN, streams=(stream("audit", (5, 0), hours_ago),), now=NOW)) == seconds, situation


def test_a_log_that_is_held_back_for_a_stream_says_so() -> None:
    leader = NodeTablespace("flights", UUID, "leader", True, (9, 7), None, retained_log=RetainedLog(7, 1_795_000_000_000, ("stream-a",)))
    (condition,) = log_released(leader).values()
    assert condition.message.endswith("is needed by the stream a, which has not read it yet: see status.streams")
