"""A history survives its file, whoever wrote it, and what is none is named."""

from __future__ import annotations

import io
import itertools

import pytest

from herdkeeper_e2e.checker.contents import Contents, parse_contents
from herdkeeper_e2e.checker.history import HistoryError, parse_history
from herdkeeper_e2e.checker.operation import Add, Content, Fault, Operation, Outcome, Read, Write
from herdkeeper_e2e.checker.recorder import Recorder

BEGIN = '{"at": 2, "process": "p", "number": 1, "phase": "invoke", "kind": "add", "rows": [1]}'
END = '{"at": 3, "process": "p", "number": 1, "phase": "ok", "kind": "add"}'


@pytest.mark.parametrize(
    ("begun", "ended"),
    [
        (Add((1, 2)), Add((1, 2))),
        (Write(3, 17), Write(3, 17)),
        (Read({}), Read({0: 4, 1: 7})),
        (Fault("leader killed"), Fault("leader killed")),
    ],
)
def test_every_kind_of_operation_survives_its_file(begun: Content, ended: Content):
    file = io.StringIO()
    recorder = Recorder(file, itertools.count(1.5).__next__)
    operation = recorder.begin("p", 4, begun)
    known = Operation("p", 4, ended, operation.begun, None, Outcome.OK, "db-herddb-0", "why", 7)
    assert parse_history(file.getvalue().splitlines()) == [operation]
    recorded = recorder.end(known)
    assert (recorded.begun, recorded.ended) == (1.5, 2.5)
    assert parse_history(file.getvalue().splitlines()) == [recorded]


def test_an_operation_without_an_end_is_unknown():
    assert [(each.outcome, each.ended) for each in parse_history([BEGIN])] == [(Outcome.UNKNOWN, None)]


def test_operations_of_several_clients_come_in_the_order_of_their_begin():
    other = BEGIN.replace('"p"', '"q"').replace('"at": 2', '"at": 1')
    assert [each.name for each in parse_history([BEGIN, END, other])] == ["q/1", "p/1"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([BEGIN, BEGIN], "p/1 begins twice"),
        ([BEGIN, END, END], "p/1 ends twice"),
        ([END], "p/1 ends without having begun"),
        ([BEGIN, END.replace("3", "1")], "the times of p go back from 2.0 to 1.0"),
        ([BEGIN, "{"], "line 2"),
        ([BEGIN.replace("add", "steal")], "kind is 'steal'"),
        ([BEGIN, END.replace("ok", "perhaps")], "'perhaps' is not a valid Outcome"),
    ],
)
def test_lines_that_are_no_history_are_named(lines: list[str], message: str):
    with pytest.raises(HistoryError, match=message):
        parse_history(lines)


def test_contents_survive_their_lines_with_rows_that_are_there_twice():
    contents = Contents("n", ((1, "p/1"), (1, "p/1"), (2, "p/2")), {0: 5})
    assert parse_contents(contents.to_lines()) == contents
