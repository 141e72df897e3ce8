"""The output of a command: a terminal with colours, or a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TextIO

CLEAR = "\x1b[H\x1b[2J"
"""ANSI: move to the top left, and clear the screen."""


class Colour(Enum):
    """ANSI codes of SGR."""

    GREEN = "32"
    RED = "31"
    YELLOW = "33"
    BOLD = "1"
    DIM = "2"


_PAINT = "|".join(("0", *(colour.value for colour in Colour)))
_CONTROL = re.compile(rf"\x1b(?!\[(?:{_PAINT})m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Makes a terminal do something else than write a line, hide what follows, or write it from right to left. The own colours are left out."""


@dataclass(frozen=True)
class Screen:
    """Standard output, or that of errors. `colours` only on a terminal without the variable NO_COLOR."""

    stream: TextIO
    colours: bool = False

    def write(self, text: str) -> None:
        """Write a line and flush. A terminal gets no commands: rows and logs may contain some that somebody else wrote."""
        if self.stream.isatty():
            text = _CONTROL.sub(lambda found: f"\\{'x' if ord(found[0]) < 256 else 'u'}{ord(found[0]):02x}", text)
        self.stream.write(text + "\n")
        self.stream.flush()

    def paint(self, text: str, colour: Colour) -> str:
        return f"\x1b[{colour.value}m{text}\x1b[0m" if self.colours and text else text

    def clear(self) -> None:
        """Clear a terminal; does nothing to a file."""
        if self.colours:
            self.stream.write(CLEAR)
