"""The writer records as acknowledged only what was, and never tries a row again whose outcome nobody knows."""

from __future__ import annotations

import io
import queue

from herdkeeper.sql.errors import ConnectionLost, LeaderNotFound, NotLeader, OutcomeUnknown
from herdkeeper_e2e.history import EventKind, parse_history
from herdkeeper_e2e.writer import Recorder, Writer


class PlayedSession:
    """Each INSERT gets the next of `answers`: None, or the error; after the last one, the writer is told to stop."""

    def __init__(self, *answers: Exception | None) -> None:
        self.orders: queue.Queue[str] = queue.Queue()
        self.tried: list[int] = []
        self.connects = 0
        self.closed = False
        self._answers = list(answers)

    def connect(self, patience):
        self.connects += 1
        self.closed = False
        return self

    def close(self) -> None:
        self.closed = True

    def execute(self, sql, row):
        self.tried.append(row[0])
        answer = self._answers.pop(0)
        if not self._answers:
            self.orders.put("stop")
        if answer is not None:
            raise answer


def written(session: PlayedSession) -> list[tuple[EventKind, int, str]]:
    file = io.StringIO()
    Writer(session, "t", Recorder(file)).run(session.orders)
    return [(event.kind, event.row, event.name) for event in parse_history(file.getvalue().splitlines())]


def test_a_row_whose_answer_was_lost_is_recorded_as_unknown_and_the_next_one_gets_another_id():
    session = PlayedSession(None, OutcomeUnknown("no answer"), None)
    assert written(session) == [(EventKind.ACKNOWLEDGED, 0, ""), (EventKind.UNKNOWN, 1, ""), (EventKind.ACKNOWLEDGED, 2, "")]
    assert session.connects == 2


def test_a_row_that_was_certainly_not_applied_is_tried_again_on_the_present_leader():
    session = PlayedSession(ConnectionLost("gone"), NotLeader("moved"), LeaderNotFound("none yet"), None)
    assert written(session) == [(EventKind.ACKNOWLEDGED, 0, "")]
    assert (session.tried, session.connects) == ([0, 0, 0, 0], 4)


def test_a_mark_is_recorded_between_the_rows_that_it_parts():
    session = PlayedSession(None)
    session.orders.put("mark a fault")
    assert written(session) == [(EventKind.MARK, -1, "a fault"), (EventKind.ACKNOWLEDGED, 0, "")]
