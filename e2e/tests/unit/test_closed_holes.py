"""The page of closed holes names tests that are there, and a test that passes on the code before is told."""

from __future__ import annotations

import re

import pytest

from herdkeeper_e2e.closed_holes import PAGE, ROOT, Hole, Outcome, holes, outcome

ROWS = holes(PAGE.read_text())


def test_every_row_of_the_page_is_read() -> None:
    lines = [
        line for line in PAGE.read_text().splitlines() if line.startswith("| ") and not line.startswith(("| What could happen", "|---"))
    ]
    assert len(ROWS) == len(lines) > 0


@pytest.mark.parametrize("hole", ROWS, ids=[row.test.rsplit("/")[-1] for row in ROWS])
def test_each_hole_names_a_test_that_is_there(hole: Hole) -> None:
    name = re.split(r"::|#", hole.test)[1].partition("[")[0]
    declared = rf"void {name}\(" if "#" in hole.test else rf"^def {name}\("
    assert re.search(declared, (ROOT / hole.file).read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    ("code", "output", "expected"),
    [
        (0, "1 passed", Outcome.PASSES),
        (1, "E   assert 1 == 2\nFAILED test_a.py::test_b - assert 1 == 2", Outcome.FAILS),
        (2, "E   ImportError: cannot import name 'LedgerScan'", Outcome.NEEDS_A_NEW_NAME),
        (1, "[ERROR] COMPILATION ERROR :", Outcome.NEEDS_A_NEW_NAME),
        (1, "[ERROR]   LedgerListTest.twoNodes:42 expected: <1> but was: <2>", Outcome.FAILS),
    ],
)
def test_a_test_that_passes_or_can_not_run_is_told_apart_from_one_that_fails(code: int, output: str, expected: Outcome) -> None:
    assert outcome(code, output) is expected
