"""A tree of parts as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from herdkeeper.plugin.screen import Colour, Screen
from herdkeeper.plugin.stack_tree import Part, State

MARKS = {State.FINE: ("✔", Colour.GREEN), State.WORKING: ("●", Colour.YELLOW), State.WRONG: ("✘", Colour.RED)}


def tree_text(title: str, parts: Sequence[Part], screen: Screen) -> str:
    """Returns the tree below a title, in colours if the screen has them."""
    return "\n".join([screen.paint(title, Colour.BOLD), *_branches(parts, "", screen)])


def _branches(parts: Sequence[Part], indent: str, screen: Screen) -> Iterator[str]:
    for part in parts:
        last = part is parts[-1]
        yield indent + ("└── " if last else "├── ") + _line(part, screen)
        below = indent + ("    " if last else "│   ")
        rail = below + ("│ " if part.parts else "  ")
        for trouble in part.troubles:
            if trouble.message not in part.said:
                yield rail + screen.paint(f"{f'{trouble.condition}: ' if trouble.condition else ''}{trouble.sentence}", Colour.RED)
            if trouble.do:
                yield rail + f"→ {trouble.do}" + (f" (explain {trouble.reason})" if trouble.reason else "")
        yield from _branches(part.parts, below, screen)


def _line(part: Part, screen: Screen) -> str:
    mark, colour = MARKS[part.state]
    reason = next((trouble.reason for trouble in part.troubles if trouble.reason and trouble.message in part.said), "")
    said = f"{reason}: {part.said}" if reason else part.said
    name = screen.paint(part.label, Colour.BOLD) if "/" in part.label else part.label
    return f"{screen.paint(mark, colour)} {name}  {said}".rstrip()
