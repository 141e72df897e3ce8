"""Merges the lines of several logs by time. Pure."""

from __future__ import annotations

import datetime
import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from herdkeeper.shared.time import moment_of

EARLIEST = datetime.datetime.min.replace(tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Line:
    """A line of a container's log. `time` is the kubelet's, unchanged; empty if there is none."""

    time: str
    source: str
    text: str


def merged(logs: Mapping[str, Iterable[str]]) -> Iterator[Line]:
    """Yields the lines of all logs (by source), which begin with their times."""
    return (line for _, line in heapq.merge(*(_timed(source, lines) for source, lines in logs.items()), key=lambda pair: pair[0]))


def _timed(source: str, lines: Iterable[str]) -> Iterator[tuple[datetime.datetime, Line]]:
    """A line without a time stays with the previous one."""
    last = EARLIEST
    for line in lines:
        stamp, _, text = line.partition(" ")
        moment = moment_of(stamp)
        last = max(last, moment) if moment is not None else last
        yield last, Line(stamp, source, text) if moment is not None else Line("", source, line)
