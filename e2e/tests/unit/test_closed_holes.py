"""The page of closed holes names tests that are there, and a test that passes on the code before is told."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from herdkeeper_e2e.closed_holes import ABOUT_TESTS, PAGE, ROOT, Hole, chosen, holes
from herdkeeper_e2e.java_members import without
from herdkeeper_e2e.outcomes import Outcome, Result, compile_errors, of_maven, of_pytest

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


def test_a_row_whose_test_came_later_names_the_commit_that_closed_it() -> None:
    page = f"| A | `{PY}::test_a`, closed by 6801f91e | |\n| B | `{PY}::test_b` | C1 |\n"
    assert [(hole.what, hole.closed_by, hole.findings) for hole in holes(page)] == [("A", "6801f91e", ()), ("B", None, ("C1",))]


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
        (0, "2 skipped in 0.1s", PY, Outcome.NOT_FOUND),
        (4, f"no tests ran in 0.1s\nERROR: not found: /somewhere/{PY}::test_b", PY, Outcome.NOT_FOUND),
        (4, f"ERROR: file or directory not found: {PY}::test_b", PY, Outcome.NOT_FOUND),
        (5, "no tests ran in 0.1s", PY, Outcome.NOT_FOUND),
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
    ],
)
def test_a_test_that_fails_in_its_body_is_told_apart_from_one_that_did_not_come_to_it(
    code: int, output: str, file: str, expected: Outcome
) -> None:
    assert of_pytest(code, output, file).outcome is expected


SUCCESS, FAILURE = "[INFO] BUILD SUCCESS", "[ERROR] There are test failures."
UNKNOWN_NAME = f"[ERROR] COMPILATION ERROR :\n[ERROR] /somewhere/{JAVA}:[4,9] cannot find symbol"


def case(name: str, child: str = "") -> str:
    """A test in a report of Maven's Surefire."""
    return f'<testcase name="{name}" classname="io.herdkeeper.node.log.LedgerListTest">{child}</testcase>'


def thrown(at: str, kind: str = "failure") -> str:
    """A failure whose trace has a line of this method."""
    return (
        f'<{kind} message="expected: 1" type="org.Failed">org.Failed: expected: 1\n at LedgerListTest.{at}(LedgerListTest.java:42)</{kind}>'
    )


@pytest.mark.parametrize(
    ("output", "report", "expected"),
    [
        (SUCCESS, case("oneLeads"), Outcome.PASSES),
        (SUCCESS, case("oneLeads", "<system-out>said</system-out>"), Outcome.PASSES),
        (SUCCESS, case("oneLeads", "<skipped/>"), Outcome.NOT_FOUND),
        (SUCCESS, case("oneLeadsAgain"), Outcome.NOT_FOUND),
        ('[ERROR] No tests matching pattern "LedgerListTest#oneLeads" were executed!', "", Outcome.NOT_FOUND),
        (FAILURE, case("oneLeads", thrown("oneLeads")), Outcome.FAILS),
        (FAILURE, case("oneLeads(String)[2]", thrown("oneLeads", "error")), Outcome.FAILS),
        (FAILURE, case("oneLeads") + case("another", thrown("another")), Outcome.PASSES),
        (FAILURE, case("oneLeads", thrown("startTheServers")), Outcome.STOPS_OUTSIDE),
        (FAILURE, case("", thrown("startTheServers")), Outcome.STOPS_OUTSIDE),
        (UNKNOWN_NAME, "", Outcome.LACKS_A_NAME),
        ("[ERROR] COMPILATION ERROR :\n[ERROR] /somewhere/LogBench.java:[4,9] cannot find symbol", "", Outcome.STOPS_OUTSIDE),
        ("[ERROR] Could not resolve dependencies", "", Outcome.STOPS_OUTSIDE),
    ],
)
def test_a_test_in_java_that_fails_in_its_body_is_told_apart_from_one_that_did_not_come_to_it(
    output: str, report: str, expected: Outcome
) -> None:
    cases = ElementTree.fromstring(f"<testsuite>{report}</testsuite>").iter("testcase")
    assert of_maven(["oneLeads"], output, cases, JAVA)["oneLeads"].outcome is expected


def test_a_result_of_newer_test_support_counts_where_it_tells_more() -> None:
    stops, lacks, fails, passes = (Result(each) for each in (Outcome.STOPS_OUTSIDE, Outcome.LACKS_A_NAME, Outcome.FAILS, Outcome.PASSES))
    assert lacks.better(stops) == stops.better(lacks) == lacks
    assert fails.better(lacks) == fails
    assert passes.better(lacks) == passes


def test_rows_are_chosen_by_words_that_they_have_and_by_words_that_they_lack() -> None:
    hole = Hole("A row is lost", JAVA, ("C1",))
    assert chosen(hole, ["finding:C1", "java"])
    assert not chosen(hole, ["finding:C2"])
    assert chosen(hole, ["-integration"])
    assert not chosen(hole, ["java", "-finding:"])


CLASS = """\
import java.util.List;
import java.util.Set;

/** What is tested. */
class ATest {

    private static final Set<String> NAMES = Set.of(
            "a");

    @BeforeEach
    void start() {
        servers();
    }

    /** With a comment. */
    @ParameterizedTest
    @ValueSource(strings = {
        "a"
    })
    void one(String value) {
        if (value.isEmpty()) {
            return;
        }

        lacking();
    }

    @Test
    void two() {
        there();
    }
}
"""


def lines_with(*texts: str) -> list[int]:
    """The numbers of the lines with these texts."""
    return [number for number, line in enumerate(CLASS.splitlines(), 1) if any(text in line for text in texts)]


def test_a_member_that_old_code_can_not_compile_is_left_out_of_its_class_and_the_rest_keeps_its_lines() -> None:
    left = without(CLASS, lines_with("import java.util.List", "lacking();")).splitlines()
    [begin], [end] = lines_with("With a comment"), lines_with("@Test")
    assert left[1 : begin - 1] == CLASS.splitlines()[1 : begin - 1]
    assert not any(left[begin - 1 : end - 1])
    assert left[end - 1 :] == CLASS.splitlines()[end - 1 :]
    assert left[0] == ""


@pytest.mark.parametrize("text", ["servers();", "class ATest"])
def test_a_class_is_left_whole_where_its_preparation_or_itself_can_not_be_compiled(text: str) -> None:
    assert without(CLASS, lines_with(text, "lacking();")) == CLASS


def test_the_lines_that_old_code_can_not_compile_are_those_that_maven_names_in_the_tests_own_file() -> None:
    beside = f"[ERROR] /somewhere/LogBench.java:[7,1] cannot find symbol\n[WARNING] /somewhere/{JAVA}:[8,1] deprecated"
    assert compile_errors(f"{UNKNOWN_NAME}\n{beside}", JAVA) == (4,)
    assert compile_errors(f"[WARNING] /somewhere/{JAVA}:[4,9] deprecated", JAVA) == ()
