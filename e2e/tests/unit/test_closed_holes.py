"""The page of closed holes names tests that are there, and a test that passes on the code before is told."""

from __future__ import annotations

import re

import pytest

from herdkeeper_e2e.closed_holes import ABOUT_TESTS, PAGE, ROOT, Hole, Outcome, holes, outcome

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


def test_what_only_tests_lacked_is_the_last_part_of_the_page_and_has_no_code_to_fail_on() -> None:
    code, heading, tests = PAGE.read_text().partition(ABOUT_TESTS)
    assert heading
    assert "\n## " not in tests
    assert len(holes(code)) + len(holes(tests)) == len(ROWS)


FINDINGS = (
    *(f"C{number}" for number in range(1, 20)),
    *(f"S{number}" for number in range(1, 11)),
    *(f"L{number}" for number in (*range(1, 15), 16, 17, *range(22, 26))),
    *(f"T{number}" for number in range(2, 9)),
)
"""Of the review at 866bbc2: those that need a test. S11, S12, L15 and L18 to L21 are about size and about what is shown."""


@pytest.mark.parametrize("finding", FINDINGS)
def test_each_finding_of_the_review_has_a_row(finding: str) -> None:
    assert any(finding in row.findings for row in ROWS)


PY, JAVA = "operator/tests/unit/test_a.py", "images/herddb/src/test/java/io/herdkeeper/node/log/LedgerListTest.java"
SUPPORT = "operator/tests/unit/situations.py"


def failure(title: str, file: str, why: str) -> str:
    """A failure of pytest, raised in this file or in the standard library at its behest."""
    return f"___ {title} ___\n{PY}:9: in test_b\n{file}:12: in f\n/usr/lib/python3.11/enum.py:5: in __getattr__\nE   {why}\n"


@pytest.mark.parametrize(
    ("code", "output", "file", "expected"),
    [
        (0, "1 passed in 0.1s", PY, Outcome.PASSES),
        (0, "[INFO] BUILD SUCCESS", JAVA, Outcome.PASSES),
        (0, "2 skipped in 0.1s", PY, Outcome.NOT_FOUND),
        (4, f"no tests ran in 0.1s\nERROR: not found: /somewhere/{PY}::test_b", PY, Outcome.NOT_FOUND),
        (4, f"ERROR: file or directory not found: {PY}::test_b", PY, Outcome.NOT_FOUND),
        (5, "no tests ran in 0.1s", PY, Outcome.NOT_FOUND),
        (1, '[ERROR] No tests matching pattern "LedgerListTest#twoNodes" were executed!', JAVA, Outcome.NOT_FOUND),
        (1, failure("test_b", PY, "assert 1 == 2"), PY, Outcome.FAILS),
        (1, failure("test_b", PY, "AssertionError: Traceback: ImportError: no numpy"), PY, Outcome.FAILS),
        (1, failure("test_b", SUPPORT, "AssertionError: a helper of the test says so"), PY, Outcome.FAILS),
        (
            1,
            failure("test_b", "operator/src/herdkeeper/plan/a.py", "AttributeError: 'NoneType' object has no attribute 'x'"),
            PY,
            Outcome.FAILS,
        ),
        (1, failure("test_b", PY, "AttributeError: TOO_FEW_RACKS"), PY, Outcome.LACKS_A_NAME),
        (1, failure("test_b", PY, "Extra inputs are not permitted [type=extra_forbidden]"), PY, Outcome.LACKS_A_NAME),
        (1, failure("test_b[1]", PY, "AttributeError: NEW") + failure("test_b[2]", PY, "assert 1 == 2"), PY, Outcome.FAILS),
        (
            2,
            failure("ERROR collecting test_a.py", PY, "ImportError: cannot import name 'A' from 'herdkeeper.api'"),
            PY,
            Outcome.LACKS_A_NAME,
        ),
        (
            2,
            failure("ERROR collecting test_a.py", SUPPORT, "ImportError: cannot import name 'A' from 'herdkeeper.api'"),
            PY,
            Outcome.STOPS_OUTSIDE,
        ),
        (2, failure("ERROR collecting test_a.py", PY, "ModuleNotFoundError: No module named 'situations'"), PY, Outcome.STOPS_OUTSIDE),
        (2, failure("ERROR collecting test_a.py", PY, "SyntaxError: invalid syntax"), PY, Outcome.STOPS_OUTSIDE),
        (1, failure("ERROR at setup of test_b", PY, "fixture 'clock' not found"), PY, Outcome.STOPS_OUTSIDE),
        (1, failure("ERROR at setup of test_b", "operator/tests/unit/conftest.py", "OSError: no etcd"), PY, Outcome.STOPS_OUTSIDE),
        (1, f"[ERROR] COMPILATION ERROR :\n[ERROR] /somewhere/{JAVA}:[4,9] cannot find symbol", JAVA, Outcome.LACKS_A_NAME),
        (1, "[ERROR] COMPILATION ERROR :\n[ERROR] /somewhere/LogBench.java:[4,9] cannot find symbol", JAVA, Outcome.STOPS_OUTSIDE),
        (1, "[ERROR]   LedgerListTest.twoNodes:42 expected: <1> but was: <2>", JAVA, Outcome.FAILS),
        (1, "[ERROR] Could not resolve dependencies", JAVA, Outcome.STOPS_OUTSIDE),
    ],
)
def test_a_test_that_fails_in_its_body_is_told_apart_from_one_that_did_not_come_to_it(
    code: int, output: str, file: str, expected: Outcome
) -> None:
    assert outcome(code, output, file) is expected
