"""It is told before the log's retention is over that somebody has not had it yet."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import REGISTRY
from situations import with_metadata, with_spec
from test_plan_archive import ARCHIVED, HELD, PROGRESS
from test_plan_log_pin import FORGETFUL, KEEPS, SEEN, UUID, checkpoint

from herdkeeper.api import Tablespace
from herdkeeper.api.checkpoint import Lsn
from herdkeeper.api.tablespace import TablespaceLog
from herdkeeper.domain import names
from herdkeeper.domain.names import ObjectKey
from herdkeeper.domain.observed.archive import ArchiveObserved
from herdkeeper.domain.observed.tablespace_record import RecordAbsent
from herdkeeper.domain.reason import Reason
from herdkeeper.domain.unknown import Unknown
from herdkeeper.formats.herddb_ledgers import LedgerList
from herdkeeper.log_metrics import forget_log, show_log
from herdkeeper.plan.log_in_time import log_standings, seconds_to_turn
from herdkeeper.plan.tablespace import plan_tablespace
from herdkeeper.status.log_in_time import log_used_in_time
from herdkeeper.status.tablespace import summarize_tablespace

NOW = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
RETENTION = 48
"""Hours, as the quickstart has it by default."""
BOTH = with_spec(ARCHIVED, log=TablespaceLog(keep_until_checkpoint=True, archive=ARCHIVED.spec.log.archive))


def opened(*hours_ago: float, first: int = 3, of: int = 3) -> LedgerList:
    """Ledgers `first`, `first` + 1 … that were opened so long ago; `of` is the first one that the log ever had."""
    moments = tuple(int((NOW.timestamp() - hours * 3600) * 1000) for hours in hours_ago)
    return LedgerList(tuple(range(first, first + len(moments))), moments, of, len(moments))


def told(tablespace: Tablespace, ledgers: Any, *checkpoints: Any, archive: Any = None) -> tuple[Any, ...]:
    """The condition's status, reason and message; nothing where there is none."""
    seen = replace(SEEN, ledgers=ledgers, checkpoints=checkpoints, archive=ArchiveObserved(archive, None, now=NOW.timestamp()), now=NOW)
    return tuple(
        part for each in log_used_in_time(log_standings(tablespace, seen)).values() for part in (each.status, each.reason, each.message)
    )


OPEN_SINCE_3 = {"restart_lsn": Lsn(ledger_id=3, entry_id=8), "open_transactions": 1}
IN_4 = checkpoint("a", (4, 2), lsn_timestamp="2026-11-18T21:00:00Z")
FAILED = checkpoint("a", (3, 1), phase="Failed")
DRILLED = with_metadata(IN_4, labels={names.COMPONENT_LABEL: names.DRILL_COMPONENT})


@pytest.mark.parametrize(
    ("situation", "tablespace", "ledgers", "checkpoints", "progress", "reason", "words"),
    [
        ("nobody asks for anything", FORGETFUL, opened(100, 60, 1), (), None, None, ""),
        ("a drill made its own Checkpoint", FORGETFUL, opened(100, 60, 1), (DRILLED,), None, None, ""),
        ("it is of the ledger that is written, however old", FORGETFUL, opened(2000, 1900), (IN_4,), None, Reason.USED_IN_TIME, "nobody"),
        ("its ledger has just ended", FORGETFUL, opened(90, 80, 1), (IN_4,), None, Reason.USED_IN_TIME, "nobody"),
        ("a moment before three quarters", FORGETFUL, opened(90, 80, 35.99), (IN_4,), None, Reason.USED_IN_TIME, "nobody"),
        ("three quarters", FORGETFUL, opened(90, 80, 36), (IN_4,), None, Reason.RETENTION_NEARS, "is released at 2026-11-21T00:00:00Z"),
        ("and who to ask", FORGETFUL, opened(90, 80, 36), (IN_4,), None, Reason.RETENTION_NEARS, "a of 2026-11-18T21:00:00Z, and"),
        ("what to do", FORGETFUL, opened(90, 80, 36), (IN_4,), None, Reason.RETENTION_NEARS, "make a Checkpoint, or see why"),
        ("the newest one counts", FORGETFUL, opened(90, 80, 36), (IN_4, checkpoint("b", (5, 0))), None, Reason.USED_IN_TIME, "nobody"),
        (
            "a transaction that was open there began in the ledger before",
            FORGETFUL,
            opened(90, 40, 1),
            (checkpoint("a", (4, 2), **OPEN_SINCE_3),),
            None,
            Reason.RETENTION_NEARS,
            "goes on from LSN 3,8",
        ),
        ("it is over, but the ledger is there", FORGETFUL, opened(90, 80, 48), (IN_4,), None, Reason.RETENTION_OVER, "at any moment"),
        ("it is gone", FORGETFUL, opened(90, 80, first=5), (IN_4,), None, Reason.LOG_GONE, "into a new Tablespace"),
        ("all failed so far", FORGETFUL, opened(90, 37), (FAILED,), None, Reason.RETENTION_NEARS, "no Ch"),
        ("the log has lost its beginning", FORGETFUL, opened(9, 3, of=1), (FAILED,), None, Reason.LOG_GONE, ""),
        ("a leader's clock is behind", FORGETFUL, opened(90, 20, 47), (IN_4,), None, Reason.USED_IN_TIME, ""),
        ("the log has no ledger yet", KEEPS, LedgerList((), (), None), (), None, Reason.USED_IN_TIME, ""),
        ("it is kept, and nobody makes one", KEEPS, opened(90, 37), (), None, Reason.RETENTION_NEARS, "would be kept beyond retention"),
        ("it is kept, and that is long ago", KEEPS, opened(90, 80, 48), (IN_4,), None, Reason.RETENTION_OVER, "fills the bookies: make"),
        ("the archive keeps up", ARCHIVED, opened(90, 80, 36, 20), (), PROGRESS, Reason.USED_IN_TIME, "nobody"),
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
    standings = log_standings(BOTH, seen)
    (condition,) = log_used_in_time(standings).values()
    assert (condition.status, condition.reason, condition.message) == ("Unknown", Reason.UNREADABLE, "silence")
    assert seconds_to_turn(standings, NOW) is None


def test_a_tablespace_of_which_there_is_no_log_yet_has_no_such_condition() -> None:
    assert log_standings(KEEPS, replace(SEEN, ledgers=None)) == ()
    assert log_standings(KEEPS, replace(SEEN, ledgers=opened(90, 80), record=RecordAbsent())) == ()


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
    seconds = seconds_to_turn(log_standings(KEEPS, seen), NOW)
    assert seconds == (None if hours is None else hours * 3600 + 1), situation


def test_a_settled_tablespace_is_looked_at_again_at_that_time() -> None:
    turns = replace(SEEN, ledgers=opened(90, 80, 6), checkpoints=(IN_4,), now=NOW)
    settled = with_spec(FORGETFUL, replicas=1)
    assert plan_tablespace(settled, replace(turns, checkpoints=()), "spark").look_again_seconds is None
    assert plan_tablespace(settled, turns, "spark").look_again_seconds == 30 * 3600 + 1


def test_the_status_has_the_condition_beside_the_others() -> None:
    seen = replace(SEEN, ledgers=opened(90, 80, 36), checkpoints=(IN_4,), now=NOW)
    assert summarize_tablespace(FORGETFUL, seen).conditions["LogUsedInTime"].reason is Reason.RETENTION_NEARS
    assert "LogUsedInTime" not in summarize_tablespace(FORGETFUL, replace(seen, checkpoints=())).conditions


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
        show_log(tablespace, log_standings(tablespace, replace(SEEN, ledgers=ledgers, checkpoints=(IN_4,), archive=archive, now=NOW)))
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
