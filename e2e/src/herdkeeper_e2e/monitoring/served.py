"""All metrics of ZooKeeper, BookKeeper and HerdDB: their names, types and labels, as real servers showed them (`served.txt`).

The tests with real servers compare. After an upgrade of a server, delete its lines: the tests then name all that belong there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("served.txt")
"""Each line has the server's component label, the metric's name, its type and its labels."""
REPOSITORY = FILE.resolve().parents[4]
PATH_OF_FILE = FILE.resolve().relative_to(REPOSITORY)
"""In the repository."""
_OWN = "herdkeeper_"
"""Begins the names of this project's metrics, which docs/metrics.md explains."""
_SAMPLE = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? \S+( \d+)?")
_ENDINGS = {"counter": ("_total",), "summary": ("_sum", "_count"), "histogram": ("_bucket", "_sum", "_count")}
_LABELS_OF_SERIES = frozenset({"quantile", "le"})
"""They tell apart the series of one summary or histogram."""
_WITHOUT_SERIES = ("key",)
"""Labels of a metric that has no series yet and is not listed. Only ZooKeeper serves such metrics, and labels its own with this."""
_VARYING = (
    (re.compile(r"(bookie_ledger_dir_)\w+(_usage)"), r"\1<folder>\2"),
    (re.compile(r"(bookie_entry_log_usage_buckets_le_)\d+"), r"\1<percent>"),
    (re.compile(r"(\w*watcher_state_)\w+"), r"\1<state>"),
    (re.compile(r"\w+(_checkpointTime)"), r"<tablespace>\1"),
    (re.compile(r"\w+(_table_)\w+(_checkpoint_processed_dirty_records)"), r"<tablespace>\1<table>\2"),
)


@dataclass(frozen=True, order=True)
class Served:
    """A metric of a server, by its pods' component label. What varies in its name is in angle brackets."""

    server: str
    name: str
    type: str
    labels: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """Returns it as in the file."""
        return " ".join((self.server, self.name, self.type, *self.labels))


def all_served() -> tuple[Served, ...]:
    """Returns what the file lists, in order."""
    found = (line.split() for line in FILE.read_text().splitlines())
    return tuple(sorted(Served(server, name, kind, tuple(labels)) for server, name, kind, *labels in found))


def series_of(page: str) -> Mapping[str, tuple[str, frozenset[str]]]:
    """Returns the series of a page of metrics by name: their metric's type, and their labels."""
    types: dict[str, str] = {}
    for name, kind in _types(page):
        types |= {name + ending: kind for ending in ("", *_ENDINGS.get(kind, ()))}
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for sample in filter(None, map(_SAMPLE.fullmatch, page.splitlines())):
        name, labels = sample["name"], frozenset(re.findall(r'(\w+)="', sample["labels"] or ""))
        found[name] = (types.get(name, "untyped"), found.get(name, ("", frozenset()))[1] | labels)
    return found


def what_to_add(server: str, page: str) -> str:
    """Returns the lines that the file lacks, and how to mend that; empty if it lists all that the page of a server serves."""
    lines = [metric.line for metric in sorted(set(_of_page(server, page)) - set(all_served()))]
    return "\n".join([f"add or correct these lines in {PATH_OF_FILE}, and run `make generate`:", *lines]) if lines else ""


def _types(page: str) -> list[tuple[str, str]]:
    return re.findall(r"^# TYPE (\S+) (\w+)$", page, re.MULTILINE)


def _of_page(server: str, page: str) -> Iterator[Served]:
    """The metrics of a page, without this project's own. Without series, they have the labels that are listed."""
    listed = {(metric.server, metric.name, metric.type): metric.labels for metric in all_served()}
    series = series_of(page)
    for name, kind in _types(page):
        if name.startswith(_OWN):
            continue
        there = {each: series[each][1] for each in (name, *(name + ending for ending in _ENDINGS.get(kind, ()))) if each in series}
        general = _general(next(iter(there), name) if kind == "counter" else name)  # a counter's type may be told without its ending
        labels = tuple(sorted(frozenset[str]().union(*there.values()) - _LABELS_OF_SERIES))
        yield Served(server, general, kind, labels if there else listed.get((server, general, kind), _WITHOUT_SERIES))


def _general(name: str) -> str:
    """A name without what varies, such as a folder or a tablespace."""
    return next((found.expand(put) for pattern, put in _VARYING if (found := pattern.fullmatch(name))), name)
