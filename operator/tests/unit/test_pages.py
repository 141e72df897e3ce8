"""The pages of the documentation: what they lead to, and name of the project, is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from herdkeeper_e2e.monitoring.own_metrics import node_metrics, operators_metrics

REPOSITORY = Path(__file__).resolve().parents[3]
PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), REPOSITORY / "charts/herdkeeper/README.md"])
OWN_FILE = re.compile(r"(?<![\w./-])(?:operator|crds|charts|images|spark-jobs|e2e|docs|examples)/[\w./*-]*[\w*]")
MAKE = re.compile(r"^\s*make ([a-z0-9-]+)")
NO_METRICS = {"herdkeeper_jobs", "herdkeeper_e2e", "herdkeeper_restore"}
"""Two packages, and the table of a restore's bookkeeping."""
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def words(page: Path) -> Iterator[str]:
    """What stands in backticks, and the lines of fenced blocks."""
    text = page.read_text()
    for block in FENCED.findall(text):
        yield from block.splitlines()[1:-1]
    yield from re.findall(r"`([^`\n]+)`", FENCED.sub("", text))


@pages
def test_each_link_leads_to_a_file_that_is_there_and_a_heading_that_it_has(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", FENCED.sub("", page.read_text())):
        if link.startswith("http"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} leads to {link}"
        assert not anchor or anchor in anchors(target), f"{page.name} leads to {link}: {target.name} has no such heading"


@pages
def test_each_file_that_is_named_with_its_room_is_there(page: Path) -> None:
    named = {word for text in words(page) for word in OWN_FILE.findall(text)}
    missing = sorted(word for word in named if not any(REPOSITORY.glob(word)))
    assert missing == []


@pages
def test_each_make_target_that_is_named_is_one(page: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    named = {word for text in words(page) for word in MAKE.findall(text)}
    assert named <= targets, "README and docs name what the Makefile has"


def test_each_metric_of_ours_is_explained_in_a_page_and_no_other_is() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    assert set(re.findall(r"\bherdkeeper_[a-z0-9_]+", text)) - NO_METRICS == {
        metric.name for metric in (*operators_metrics(), *node_metrics())
    }
