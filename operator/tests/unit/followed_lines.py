"""Waits for the lines of an endless answer."""

from __future__ import annotations

import select
from collections.abc import Iterator

from herdkeeper.clients.bounded_http import LineStream

LONG = 120.0


def followed(stream: LineStream) -> Iterator[bytes]:
    """The lines of a stream until it ends."""
    while True:
        line = stream.next_line()
        if line is not None:
            yield line
        elif not select.select([stream], [], [], LONG)[0]:
            raise AssertionError("no line came")
