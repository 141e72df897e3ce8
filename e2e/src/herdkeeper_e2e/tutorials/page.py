"""The commands of a tutorial, and their shown output.

They are fenced blocks of the language `console`. A line `$ command` is typed by a person, and `> ` continues it. The lines below, up to the
next `$`, are the output (`output`); a command without any may print anything. All other blocks are only for reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto

PROMPT, GOES_ON, FENCE, LANGUAGE = "$ ", "> ", "```", "console"


class PageError(ValueError):
    """A block is not a shell session. The message has the line number."""


@dataclass(frozen=True)
class Step:
    """A command, its output, and its line number in the page."""

    command: str
    shown: tuple[str, ...]
    line: int


class _In(Enum):
    TEXT = auto()
    OTHER_BLOCK = auto()
    CONSOLE = auto()


def steps_of(text: str) -> tuple[Step, ...]:
    """Returns the steps of a page, in order.

    Raises PageError for a block with output before its first command, or without an end.
    """
    steps = tuple(_steps(text))
    if sum(line.startswith(FENCE) for line in text.splitlines()) % 2:
        raise PageError("the last fenced block does not end")
    return steps


def _steps(text: str) -> Iterator[Step]:
    place, step = _In.TEXT, None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(FENCE):
            if step is not None:
                yield step
            place, step = _behind_fence(place, line), None
        elif place is _In.CONSOLE:
            if line.startswith(PROMPT):
                if step is not None:
                    yield step
                step = Step(line.removeprefix(PROMPT), (), number)
            elif step is None:
                raise PageError(f"line {number}: a block of the language {LANGUAGE} begins with `{PROMPT}command`, and this is: {line}")
            else:
                step = _with(step, line)


def _behind_fence(place: _In, line: str) -> _In:
    if place is not _In.TEXT:
        return _In.TEXT
    return _In.CONSOLE if line.removeprefix(FENCE).strip() == LANGUAGE else _In.OTHER_BLOCK


def _with(step: Step, line: str) -> Step:
    if line.startswith(GOES_ON) and not step.shown:
        return replace(step, command=f"{step.command}\n{line.removeprefix(GOES_ON)}")
    return replace(step, shown=(*step.shown, line))
