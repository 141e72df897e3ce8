"""How a report is read: by light, in the dark, and on paper."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from herdkeeper_jobs.report.page import page
from herdkeeper_jobs.report.plots import number

STYLE = page("title", "when", "").partition("<style>")[2].partition("</style>")[0]
ROOTS = re.findall(r":root\{([^}]*)\}", STYLE)
COLOURS: Mapping[str, dict[str, str]] = dict(
    zip(("light", "dark"), (dict(re.findall(r"--(\w+):(#\w+)", root)) for root in ROOTS), strict=True)
)
PRINTED = STYLE.partition("@media print{")[2]
modes = pytest.mark.parametrize("mode", COLOURS)


def lightness(colour: str) -> float:
    """Relative luminance, as WCAG has it."""
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted(map(lightness, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_the_dark_has_each_colour_of_its_own() -> None:
    assert COLOURS["light"].keys() == COLOURS["dark"].keys()


@modes
@pytest.mark.parametrize("severity", ["critical", "under", "atrisk", "pending", "unknown", "low"])
def test_a_letter_on_a_coloured_cell_and_a_word_on_a_badge_can_be_read(mode: str, severity: str) -> None:
    dark_letters = re.search(rf"svg \.{severity}\+\.on[^{{]*\{{fill:var\(--onlight\)", STYLE)
    assert (dark_letters is None) == (re.search(rf"\.badge\.{severity}[^{{]*\{{color:var\(--onlight\)", STYLE) is None)
    colours = COLOURS[mode]
    assert contrast(colours["onlight" if dark_letters else "on"], colours[severity]) >= 4.5


@modes
def test_words_can_be_read_and_what_stands_beside_each_other_told_apart(mode: str) -> None:
    colours = COLOURS[mode]
    assert all(contrast(colours[words], colours[ground]) >= 4.5 for words in ("ink", "soft") for ground in ("paper", "panel"))
    # made from the whole log, or from another checkpoint; a deep audit, or a light one
    assert contrast(colours["verified"], colours["pending"]) >= 2


def test_a_report_is_printed_in_light_colours_whatever_the_reader_has() -> None:
    assert re.findall(r"@media ([^{]*dark[^{]*)\{", STYLE) == ["screen and (prefers-color-scheme:dark)"]
    assert "print-color-adjust:exact" in PRINTED


def test_nothing_is_cut_off_or_torn_apart_on_paper() -> None:
    assert ".wide{overflow:visible}" in PRINTED
    assert re.search(r"\.wide td,\.wide th\{white-space:normal", PRINTED)
    (whole,) = re.findall(r"([^{}]*)\{break-inside:avoid\}", PRINTED)
    assert set(whole.split(",")) == {".verdict", ".tiles", "svg", "tr"}
    (leading,) = re.findall(r"([^{}]*)\{break-after:avoid\}", PRINTED)
    assert {"h2", "h3", ".key"} <= set(leading.split(","))


@pytest.mark.parametrize(("value", "words"), [(0, "0"), (0.04, "0.04"), (0.5, "0.5"), (1.25, "1.2"), (1234, "1,234"), (3_200_000, "3.2 M")])
def test_a_small_number_on_an_axis_is_not_zero(value: float, words: str) -> None:
    assert number(value) == words
