"""`kubectl herdkeeper explain`: every reason has a meaning and an action, and the documentation's tables are told word for word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from played_cluster import PlayedCluster, called

from herdkeeper.commands.plugin import pages_with_reasons
from herdkeeper.plugin.command import BadInputError
from herdkeeper.plugin.how_to import rows_about, rows_of
from herdkeeper.plugin.reasons import EXPLAINED, NOTHING
from herdkeeper.plugin.reasons_page import reasons_page
from herdkeeper.plugin.table import COMMANDS
from herdkeeper.shared.reason import Reason

DOCS = Path(__file__).resolve().parents[3] / "docs"


def explain(*words: str) -> str:
    return called(PlayedCluster(), "explain", *words)[0].text


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_is_explained_in_sentences(reason: Reason) -> None:
    known = EXPLAINED[reason]
    assert known.means.endswith(".")
    assert known.do.endswith(".")
    assert known.means in explain(reason.value)


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason.needs_person])
def test_a_reason_that_needs_a_person_says_what_the_person_does(reason: Reason) -> None:
    assert EXPLAINED[reason].do != NOTHING
    assert "needs a person" in explain(reason.value)


COMMAND = re.compile(r"`([a-z]+(?:-[a-z]+)*)(?: --[^`]*)?`")
NO_COMMANDS = {"ledgers"}
"""A field of a status that is one small word."""


def test_a_command_that_an_explanation_names_is_one() -> None:
    named = {word for known in EXPLAINED.values() for word in COMMAND.findall(known.do)} - NO_COMMANDS
    assert {"status", "checkpoint", "run-now", "recover"} <= named <= {command.name for command in COMMANDS}


def test_a_table_of_the_documentation_is_told_word_for_word() -> None:
    text = explain("TooFewBookies")
    assert "docs/how-to/fewer-bookies.md, “Fewer bookies, other bookies”" in text
    assert "raise `spec.bookies`" in text


def test_the_second_cell_of_a_row_begins_a_sentence() -> None:
    (row,) = rows_of({"page.md": "# Page\n| ClaimLost | a disk is gone | read the message |\n"})
    assert row.sentences == "a disk is gone. Read the message"
    assert ". the message" not in explain("ClaimLost")


def test_each_row_about_a_reason_is_found_under_each_reason_that_it_names() -> None:
    rows = tuple(rows_of(pages_with_reasons(DOCS)))
    assert len(rows) > 40
    for row in rows:
        for reason in row.reasons:
            assert row in rows_about(Reason(reason))


def test_the_page_of_reasons_has_each_once_those_that_need_a_person_first_with_the_rows_of_the_tables() -> None:
    text = reasons_page(tuple(rows_of(pages_with_reasons(DOCS))))
    assert (DOCS / "reasons.md").read_text() == text
    headings = [line.removeprefix("### ") for line in text.splitlines() if line.startswith("### ")]
    assert sorted(headings) == sorted(reason.value for reason in Reason)
    urgent = text.partition("## What needs a person\n")[2].partition("\n## ")[0]
    assert {line.removeprefix("### ") for line in urgent.splitlines() if line.startswith("### ")} == {
        reason.value for reason in Reason if reason.needs_person
    }
    assert "[Fewer bookies, other bookies](how-to/fewer-bookies.md): one bookie more than the largest ensemble" in text


def test_a_first_cell_may_name_a_status_several_reasons_or_more_words() -> None:
    page = """# Page
## Drills
| True, Drilled | it is fine | |
| DrillFailed, DrillOverdue | see [the page](x.md#y) |
| NodeLost (on NodesReachable) | a \\| b |
"""
    drilled, failed, lost = rows_of({"page.md": page})
    assert (drilled.reasons, drilled.cells, drilled.heading) == (("Drilled",), ("it is fine",), "Drills")
    assert (failed.reasons, failed.cells) == (("DrillFailed", "DrillOverdue"), ("see the page",))
    assert (lost.reasons, lost.cells) == (("NodeLost",), ("a | b",))


def test_the_head_of_a_table_is_no_row_and_a_verdict_is_no_reason() -> None:
    page = """| Ready | What it means |
|---|---|
| NodeLost | a machine is off |

| Verdict in the status | What it means |
|---|---|
| Failed | other rows |
"""
    assert [row.subject for row in rows_of({"page.md": page})] == ["NodeLost"]
    assert "docs/" not in explain("Ready")


def test_all_are_listed_when_none_is_named() -> None:
    assert len(explain().splitlines()) == len(Reason)


def test_case_does_not_matter_and_an_unknown_word_is_answered_with_those_written_alike() -> None:
    assert explain("invalidspec").startswith("InvalidSpec (needs a person)")
    with pytest.raises(BadInputError, match=r"REASON InvalidSpek: there is no such reason; did you mean InvalidSpec"):
        explain("InvalidSpek")
