"""The pages of the documentation: what they lead to, and name of the project, is there."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herdkeeper.api import KINDS
from herdkeeper.certificates.settings import bookkeeper_lines
from herdkeeper.plugin.kinds import resource_kind
from herdkeeper.plugin.parser import parser_of
from herdkeeper.plugin.table import COMMANDS
from herdkeeper.schema.crd import resource_schema
from herdkeeper.shared import names
from herdkeeper_e2e.monitoring.own_metrics import node_metrics, operators_metrics

REPOSITORY = Path(__file__).resolve().parents[3]
PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), REPOSITORY / "charts/herdkeeper/README.md"])
OWN_FILE = re.compile(r"(?<![\w./-])(?:operator|crds|charts|images|spark-jobs|e2e|docs|examples)/[\w./*-]*[\w*]")
MAKE = re.compile(r"^\s*make ([a-z0-9-]+)")
NO_METRICS = {"herdkeeper_jobs", "herdkeeper_e2e", "herdkeeper_sql", "herdkeeper_restore"}
"""Two packages, a wheel, and the table of a restore's bookkeeping."""
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


def test_each_annotation_and_label_of_ours_is_explained_and_no_other_is() -> None:
    ours = {
        value.removesuffix("/") for name, value in vars(names).items() if name.endswith(("_ANNOTATION", "_LABEL", "_PREFIX", "FINALIZER"))
    }
    text = (REPOSITORY / "docs/annotations.md").read_text()
    told = {word.partition("/NODE")[0] for word in re.findall(r"`((?:[a-z-]+\.)?herdkeeper\.io/[\w-]+)`", text)}
    assert told == {word for word in ours if "herdkeeper.io" in word}


def test_other_systems_are_told_the_lines_by_which_sql_nodes_show_their_certificate_to_bookies() -> None:
    page = REPOSITORY / "docs/how-to/other-systems.md"
    assert {f"{key}={value}" for key, value in bookkeeper_lines("/identity").items()} <= set(words(page))


PLUGIN = "kubectl herdkeeper "
PLACEHOLDERS = {"REASON": "NoLeader", "RUN": "ckpt/flights-1"}
"""Words of pages that stand for a value out of a list."""


def plugin_commands() -> Iterator[tuple[str, list[str]]]:
    """Each command of the plugin that a page has, as a shell would give it its words. Not those of the page that says how each is
    called."""
    for page in PAGES:
        for text in words(page) if page.name != "kubectl-plugin.md" else ():
            line = text.removeprefix("$ ")
            if line.startswith(PLUGIN):
                given = shlex.split(line.removeprefix(PLUGIN), comments=True)
                yield f"{page.name}: {line}", [PLACEHOLDERS.get(word, word) for word in given]


@pytest.mark.parametrize("given", [pytest.param(given, id=line) for line, given in plugin_commands()])
def test_each_command_of_the_plugin_that_a_page_has_is_understood(given: list[str]) -> None:
    if len(given) == 1:  # a sentence may name a command without its arguments
        assert given[0] in {command.name for command in COMMANDS}
    else:
        parser_of(COMMANDS).parse_args(given)


def merge_patches() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each `kubectl patch` that a page has: the line, the kind as it is written, and the patch."""
    for page in PAGES:
        for text in words(page):
            line = text.removeprefix("$ ")
            if line.startswith("kubectl patch ") and not line.startswith("kubectl patch secret "):
                given = shlex.split(line, comments=True)
                yield f"{page.name}: {line}", given[2], json.loads(given[given.index("-p") + 1])


@pytest.mark.parametrize(("kind", "patch"), [pytest.param(kind, patch, id=line) for line, kind, patch in merge_patches()])
def test_each_field_that_a_page_patches_is_one(kind: str, patch: dict[str, Any]) -> None:
    resource = resource_kind(kind)
    assert resource is not None
    (model,) = (each for each in KINDS if resource.name == each.KIND)
    assert list(unknown_fields(patch, resource_schema(model))) == []


def unknown_fields(value: Any, schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Fields of a value that a schema does not have."""
    if isinstance(value, list):
        for item in value:
            yield from unknown_fields(item, schema.get("items", {}), f"{path}[]")
    elif isinstance(value, dict) and "properties" in schema:
        for name, below in value.items():
            if name in schema["properties"]:
                yield from unknown_fields(below, schema["properties"][name], f"{path}.{name}")
            else:
                yield f"{path}.{name}"


def test_faults_of_herddb_that_nobody_expects_are_told_where_applications_look() -> None:
    faults = (REPOSITORY / "docs/how-to/connect.md").read_text().partition("\n## Faults to know\n")[2]
    assert re.search(r"a value .* above 1 MiB \(`RecordTooBigException`\)", faults)
