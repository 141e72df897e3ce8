"""Where a command writes to: a terminal, which shows colours, or a file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TextIO

CLEAR = "\x1b[H\x1b[2J"
"""ANSI: to the top left, and nothing on the screen."""


class Colour(Enum):
    """ANSI codes of SGR."""

    GREEN = "32"
    RED = "31"
    YELLOW = "33"
    BOLD = "1"
    DIM = "2"


@dataclass(frozen=True)
class Screen:
    """Standard output. `colours` only where that is a terminal and the variable NO_COLOR is not set."""

    stream: TextIO
    colours: bool = False

    def write(self, text: str) -> None:
        """Writes text and a line's end, at once."""
        self.stream.write(text + "\n")
        self.stream.flush()

    def paint(self, text: str, colour: Colour) -> str:
        """The text in a colour, or as it is."""
        return f"\x1b[{colour.value}m{text}\x1b[0m" if self.colours and text else text

    def clear(self) -> None:
        """Empties a terminal; a file goes on."""
        if self.colours:
            self.stream.write(CLEAR)
