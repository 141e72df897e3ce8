"""Every state that a model can reach, breadth first: the first wrong one is reached by the shortest story, which is told step by step."""

from __future__ import annotations

import gc
import os
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

MORE_FAULTS = int(os.environ.get("MORE_FAULTS", "0"))
"""So many more faults than in a test that is run each time may happen in a story."""
State = TypeVar("State", bound=Hashable)


@dataclass(frozen=True)
class Explored:
    """`states` is how many were reached, `wrong` what is wrong with the first wrong one, None where all are right, `story` how it was
    reached. `whole`: whether none was left out for want of room."""

    states: int
    wrong: str | None = None
    story: tuple[str, ...] = ()
    whole: bool = True

    def __str__(self) -> str:
        if self.wrong is None:
            return f"{self.states} states, and nothing is wrong in any of them"
        told = "\n".join(f"{number:3}. {step}" for number, step in enumerate(self.story, 1))
        return f"{self.wrong}, by this story (of {self.states} states):\n{told}"

    def require_right(self) -> None:
        """Fails with the story if a state is wrong, and if a test that is run each time leaves states out."""
        print(self)
        assert self.wrong is None, str(self)
        assert self.whole or MORE_FAULTS, "the bounds are too wide for a test that is run each time"

    def require_wrong(self, words: str = "") -> None:
        """Fails unless a state is wrong in this way."""
        print(self)
        assert self.wrong is not None, str(self)
        assert words in self.wrong, str(self)


class Explorer(Generic[State]):
    """`steps` gives what can happen next, each with a sentence; `wrong` says what is wrong with a state, None when nothing is."""

    def __init__(self, steps: Callable[[State], Iterable[tuple[str, State]]], wrong: Callable[[State], str | None]) -> None:
        self._steps = steps
        self._wrong = wrong

    def explore(self, start: State, most_states: int) -> Explored:
        """All states that can be reached from `start`, up to a number."""
        gc.disable()  # of what is remembered nothing is ever garbage
        try:
            return self._explore(start, most_states)
        finally:
            gc.enable()

    def _explore(self, start: State, most_states: int) -> Explored:
        before: dict[State, tuple[State, str] | None] = {start: None}
        waiting = deque([start])
        while waiting:
            state = waiting.popleft()
            if (wrong := self._wrong(state)) is not None:
                return Explored(len(before), wrong, _story(before, state))
            for told, after in self._steps(state):
                if after not in before:
                    before[after] = (state, told)
                    waiting.append(after)
            if len(before) > most_states:
                return Explored(len(before), whole=False)
        return Explored(len(before))

    def stuck(self, start: State, done: Callable[[State], bool], most_states: int) -> Explored:
        """All states that can be reached from `start`, up to a number. Wrong is the first one from which no step leads to one that is
        `done`.
        """
        before: dict[State, tuple[State, str] | None] = {start: None}
        leads_here: dict[State, list[State]] = {start: []}
        for state in (waiting := [start]):
            for told, after in self._steps(state):
                if after not in before:
                    before[after] = (state, told)
                    waiting.append(after)
                leads_here.setdefault(after, []).append(state)
            if len(before) > most_states:
                return Explored(len(before), whole=False)
        ending = [state for state in before if done(state)]
        found = set(ending)
        for state in ending:
            fresh = set(leads_here[state]) - found
            found |= fresh
            ending.extend(fresh)
        first = next((state for state in before if state not in found), None)
        return Explored(len(before)) if first is None else Explored(len(before), "it never ends", _story(before, first))


def _story(before: dict[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    told = []
    while (step := before[state]) is not None:
        state, sentence = step
        told.append(sentence)
    return tuple(reversed(told))
