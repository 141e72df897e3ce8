"""Executes a tutorial: each command as written, and whether it prints what is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from herdkeeper_e2e.tutorials.output import is_as_shown
from herdkeeper_e2e.tutorials.page import Step, steps_of
from herdkeeper_e2e.tutorials.shell import Ended, Shell

LIMIT_SECONDS = 2400.0
"""For one command: creating the cluster, or a wait of half an hour."""


class TutorialError(AssertionError):
    """A command failed, or printed something else. The message has page, line, command, and both outputs."""


def carry_out(page: Path, shell: Shell, say: Callable[[str], None]) -> int:
    """Run all commands of a page, in order, until one goes wrong; returns their number.

    Raises TutorialError if a command behaves differently.
    """
    steps = steps_of(page.read_text())
    for step in steps:
        say(f"$ {step.command}")
        ended = shell.run(step.command, LIMIT_SECONDS)
        say(ended.printed)
        wrong = why_not(step, ended)
        if wrong is not None:
            raise TutorialError(f"{page.name}, line {step.line}: `{step.command}` {wrong}")
    return len(steps)


def why_not(step: Step, ended: Ended) -> str | None:
    """Returns how a command differs from the page, or None."""
    if ended.code != 0:
        return f"ended with code {ended.code}:\n{ended.printed}"
    if not is_as_shown(ended.printed, step.shown):
        return "printed\n{}\nand the page shows\n{}".format(ended.printed, "\n".join(step.shown))
    return None
