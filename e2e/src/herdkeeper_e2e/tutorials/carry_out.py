"""Carries out a tutorial: each command as it stands there, and whether it printed what is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from herdkeeper_e2e.tutorials.output import is_as_shown
from herdkeeper_e2e.tutorials.page import Step, steps_of
from herdkeeper_e2e.tutorials.shell import Ended, Shell

LIMIT_SECONDS = 2400.0
"""Of one command: making the cluster, or a wait of half an hour."""


class TutorialError(AssertionError):
    """A command failed, or printed something else; the message has page, line, command, and both outputs."""


def carry_out(page: Path, shell: Shell, say: Callable[[str], None]) -> int:
    """All commands of a page, in order, up to the first that goes wrong. How many there were.

    Raises:
        TutorialError: a command is not as the page says.
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
    """How a command differs from what the page says; None when it does not."""
    if ended.code != 0:
        return f"ended with code {ended.code}:\n{ended.printed}"
    if not is_as_shown(ended.printed, step.shown):
        return "printed\n{}\nand the page shows\n{}".format(ended.printed, "\n".join(step.shown))
    return None
