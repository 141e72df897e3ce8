"""The site of docs/: each page is in the navigation, and pages read as on GitHub."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from herdkeeper_e2e.site.addresses import loaded_by_html, loaded_by_styles
from herdkeeper_e2e.site.blocks import with_blocks_apart
from herdkeeper_e2e.site.fences import outside_fences
from herdkeeper_e2e.site.nav import expanded, pages
from herdkeeper_e2e.site.repository_files import shown_outside_docs, text_of, with_links_in_site

REPOSITORY = Path(__file__).resolve().parents[3]
DOCS = REPOSITORY / "docs"


class _Configuration(yaml.SafeLoader):
    """mkdocs.yml names functions of Python; here they are nothing."""


_Configuration.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def navigation() -> list[str]:
    nav = yaml.load((REPOSITORY / "mkdocs.yml").read_text(), _Configuration)["nav"]
    return list(pages(expanded(nav, DOCS)))


def test_each_page_is_in_the_navigation_once() -> None:
    assert Counter(navigation()) == Counter(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


def test_each_page_has_one_title_in_its_first_line() -> None:
    for page in DOCS.rglob("*.md"):
        assert page.read_text().startswith("# "), page


def test_a_file_that_a_page_leads_to_is_shown_in_the_site_and_so_is_what_that_leads_to(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "code").mkdir()
    (tmp_path / "code/README.md").write_text("# Code\n[more](more.py), [docs](../docs/a.md)\n```\n[none](none.py)\n```\n")
    (tmp_path / "code/more.py").write_text("````\n")
    (tmp_path / "docs/a.md").write_text("[code](../code/README.md#code) [folder](../code) [web](https://example.org)\n")
    assert shown_outside_docs(tmp_path, ["docs/a.md"]) == ("code", "code/README.md", "code/more.py")
    assert "- `more.py`" in text_of(tmp_path, "code")
    assert "\n`````python\n````\n`````\n" in text_of(tmp_path, "code/more.py")


def test_a_link_leads_to_the_page_of_a_file_by_its_place_in_the_site() -> None:
    def in_site(page: str, text: str) -> str:
        return with_links_in_site(page, text, lambda path: path == "e2e/tests")

    assert in_site("docs/a.md", "[b](b.md#c) [x](https://example.org/y)") == "[b](b.md#c) [x](https://example.org/y)"
    assert in_site("docs/decisions/1.md", "[x](../../e2e/x.py)") == "[x](../source/e2e/x.py.md)"
    assert in_site("docs/a.md", "[x](../e2e/tests)") == "[x](source/e2e/tests/index.md)"
    assert in_site("images/README.md", "[a](../docs/a.md) [b](b.py)") == "[a](../../a.md) [b](b.py.md)"
    assert in_site("docs/a.md", "```\n[x](../x.py)\n```") == "```\n[x](../x.py)\n```"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("two:\n- a\n- b\n", "two:\n\n- a\n- b\n"),
        ("two:\n1. a\n2. b", "two:\n\n1. a\n2. b"),
        ("- a\n  goes on\n- b", "- a\n  goes on\n- b"),
        ("these:\n| a |\n|---|\n| b |\nend", "these:\n\n| a |\n|---|\n| b |\nend"),
        ("## Title\n- a", "## Title\n- a"),
        ("```\ntwo:\n- a\n```\n- b", "```\ntwo:\n- a\n```\n\n- b"),
        ("```\n$ a\n```\n| b |\n|---|", "```\n$ a\n```\n\n| b |\n|---|"),
        ("**bold** - no list", "**bold** - no list"),
    ],
)
def test_lists_and_tables_stand_apart_from_the_paragraph_or_fence_before(written: str, read: str) -> None:
    assert with_blocks_apart(written) == read


def test_what_a_page_would_load_from_another_host_is_found_and_what_a_reader_follows_is_not() -> None:
    page = """<a href="https://example.org/a">a</a><link rel="next" href="https://example.org/n"><script src="//example.org/s.js"></script>
    <link rel="stylesheet" href="https://example.org/c.css"><img src="a/b.svg"><script src="assets/x.js"></script>"""
    assert loaded_by_html(page) == ["//example.org/s.js", "https://example.org/c.css"]
    assert loaded_by_styles("@import 'https://example.org/x.css'; a { background: url(img.svg) } b { src: url(//example.org/f) }") == [
        "https://example.org/x.css",
        "//example.org/f",
    ]


CONCEPTS = sorted(page for page in (DOCS / "concepts").glob("*.md") if page.name != "README.md")


@pytest.mark.parametrize("page", CONCEPTS, ids=lambda page: page.stem)
def test_each_concept_has_a_picture_few_words_and_the_decisions_behind_it(page: Path) -> None:
    parts = list(outside_fences(page.read_text()))
    words = sum(len(part.split()) for part, is_fence in parts if not is_fence)
    assert [is_fence for part, is_fence in parts if part.startswith("```mermaid")] == [True]
    assert 250 <= words <= 500
    assert "](../decisions/" in parts[-1][0]


def test_each_task_has_a_page_and_the_index_has_its_title_as_a_heading_that_leads_to_it() -> None:
    index = (DOCS / "how-to.md").read_text()
    for page in (DOCS / "how-to").glob("*.md"):
        title = page.read_text().splitlines()[0].removeprefix("# ")
        section = index.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        assert f"](how-to/{page.name})" in section, page.name


def test_each_limit_is_one_line_that_leads_to_its_details_and_no_detail_is_left_out() -> None:
    lines = re.findall(r"^- \[(.+)\]\((limits/[a-z-]+\.md)#[^)]*\)$", (DOCS / "limits.md").read_text(), re.MULTILINE)
    details = [
        (heading, page.relative_to(DOCS).as_posix())
        for page in (DOCS / "limits").glob("*.md")
        for heading in re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)
    ]
    assert Counter(lines) == Counter(details)
    assert len(lines) == sum(line.startswith("- ") for line in (DOCS / "limits.md").read_text().splitlines())
