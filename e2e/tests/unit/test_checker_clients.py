"""What a client records: only what the database answered counts as success, and what may have taken effect never counts as failed."""

from __future__ import annotations

import io
import threading
from collections.abc import Mapping
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from herdkeeper.sql.errors import ConnectionLost, LeaderNotFound, NotLeader, OutcomeUnknown, ServerError
from herdkeeper_e2e.checker.client import PATIENCE, Client
from herdkeeper_e2e.checker.history import parse_history
from herdkeeper_e2e.checker.operation import Operation, Outcome, Read
from herdkeeper_e2e.checker.recorder import Recorder
from herdkeeper_e2e.checker.work import ROLLED_BACK_EVERY, Adding, Reading, Work, Writing
from herdkeeper_e2e.checker.workload_plan import JDBC, PYTHON
from herdkeeper_e2e.session import LeaderConnection

OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN


class PlayedSession:
    """Its connections answer each statement, COMMIT included, with the next of `answers`; after the last one the client is told to stop."""

    address = SimpleNamespace(host="db-herddb-1.db-herddb-nodes.e2e.svc")
    position: Mapping[str, int] = {"ledger": 12, "offset": 3}

    def __init__(self, *answers: Exception | int) -> None:
        self.stop = threading.Event()
        self.statements: list[str] = []
        self.connects = 0
        self.closed = True
        self._answers = list(answers)

    def connect(self, patience):
        self.connects += 1
        self.closed = False
        return self

    def close(self) -> None:
        self.closed = True

    def execute(self, sql: str, parameters=()) -> int:
        self.statements.append(sql.split(" ", 1)[0])
        answer = self._answers.pop(0)
        if not self._answers:
            self.stop.set()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def query(self, sql: str):
        if "checker_register" not in sql:
            return [self.position]
        return [{"register": 0, "value": self.execute(sql), **self.position}]

    @contextmanager
    def transaction(self):
        yield self
        self.execute("COMMIT")


def recorded(work: Work, session: PlayedSession) -> list[Operation]:
    file = io.StringIO()
    Client("python-0", work, LeaderConnection(session, PATIENCE), Recorder(file)).run(session.stop)
    return parse_history(file.getvalue().splitlines())


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [(1, OK), (OutcomeUnknown("lost"), UNKNOWN), (ConnectionLost("gone"), FAIL), (NotLeader("moved"), FAIL), (ServerError("full"), FAIL)],
)
def test_the_answer_to_a_single_insert_decides(answer: Exception | int, outcome: Outcome):
    (operation,) = recorded(Adding(0), PlayedSession(answer))
    assert (operation.outcome, operation.leader) == (outcome, "db-herddb-1")


def test_after_a_failure_the_next_operation_has_a_new_connection_and_another_number():
    session = PlayedSession(NotLeader("moved"), 1, 1, 1, 1, 1)
    assert [(each.number, each.outcome) for each in recorded(Adding(0), session)] == [(0, FAIL), (1, OK)]
    assert session.connects == 2


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        ([1, 1, 1, 1, 1], OK),
        ([1, ConnectionLost("gone")], FAIL),
        ([1, 1, 1, 1, OutcomeUnknown("lost")], UNKNOWN),
        ([1, 1, 1, 1, NotLeader("moved")], FAIL),
    ],
)
def test_a_transaction_is_unknown_only_when_the_answer_to_its_commit_was_lost(answers: list[Exception | int], outcome: Outcome):
    session = PlayedSession(1, *answers)
    assert recorded(Adding(0), session)[-1].outcome is outcome
    assert session.statements == ["INSERT", "INSERT", "INSERT", "INSERT", "UPDATE", "COMMIT"][: len(answers) + 1]


def test_some_transactions_are_rolled_back_by_the_client_and_have_failed():
    statements = {1: 1, 3: 5, 5: 7}
    sizes = [len(Adding(0).content(number).rows) for number in range(ROLLED_BACK_EVERY)]
    answers = [1] * (sum(statements[size] for size in sizes) - 1)  # the last one sends no COMMIT
    session = PlayedSession(*answers)
    assert [each.outcome for each in recorded(Adding(0), session)] == [OK] * (ROLLED_BACK_EVERY - 1) + [FAIL]
    assert session.connects == 1


def test_an_update_that_changes_no_row_tells_too_little():
    assert [each.outcome for each in recorded(Writing(0), PlayedSession(1, 0))] == [OK, UNKNOWN]


def test_some_writes_of_a_register_are_transactions_some_of_which_the_client_rolls_back():
    answers = [answer for number in range(ROLLED_BACK_EVERY) for answer in ([1, 1] if number % 4 == 3 else [1])][:-1]
    session = PlayedSession(*answers)
    assert [each.outcome for each in recorded(Writing(0), session)] == [OK] * (ROLLED_BACK_EVERY - 1) + [FAIL]
    assert session.statements.count("COMMIT") == 3


def test_a_read_and_a_write_keep_what_they_found_and_in_which_ledger_the_leader_wrote():
    assert [(each.content, each.ledger) for each in recorded(Reading(), PlayedSession(7))] == [(Read({0: 7}), 12)]
    assert [each.ledger for each in recorded(Writing(0), PlayedSession(1))] == [12]


def test_a_ledger_without_an_entry_says_nothing_of_who_leads():
    session = PlayedSession(7)
    session.position = {"ledger": 13, "offset": -1}
    assert [each.ledger for each in recorded(Reading(), session)] == [None]


def test_without_a_leader_nothing_is_tried():
    class NoLeader(PlayedSession):
        def connect(self, patience):
            self.stop.set()
            raise LeaderNotFound("none yet")

    assert recorded(Adding(0), NoLeader(1)) == []


def test_no_two_clients_share_an_id_or_a_register():
    clients = [share.first_client + number for share in (PYTHON, JDBC) for number in range(share.adders)]
    rows = [row for client in clients for number in (0, 1, 999_999_999) for row in Adding(client).content(number).rows]
    assert len(set(rows)) == len(rows)
    assert PYTHON.register != JDBC.register
