"""The operator dies right after it has taken a step, once for each step of a procedure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from conftest import Stack, say

from herdkeeper_e2e.waiting import Limit, Pending, wait_for

SOON = Limit(900, 0.2)


@dataclass(frozen=True)
class Step:
    """A step of a procedure, and the trace in the cluster by which one sees that it was taken."""

    name: str
    taken: Callable[[Stack], bool]


def dies_after_each(stack: Stack, steps: Sequence[Step], meanwhile: Callable[[], None] = lambda: None) -> None:
    """Waits for one step after the other, and kills the operator as soon as its trace is seen."""
    for step in steps:

        def taken(step: Step = step) -> bool | Pending:
            meanwhile()
            return step.taken(stack) or Pending(f"not yet: {step.name}")

        wait_for(step.name, taken, SOON, say)
        say(f"{step.name}: the operator is killed")
        stack.sql.kill_operator()
