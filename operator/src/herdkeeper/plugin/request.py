"""Requests to the operator by annotation: it answers each once, with another annotation, and takes the request off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from herdkeeper.plugin.change import annotate, carry_out
from herdkeeper.plugin.command import WRONG, Answer, Argument, BadInputError, Call, Takes
from herdkeeper.plugin.kinds import Kind
from herdkeeper.shared.objects import Json, annotation

LOOK_SECONDS = 1.0


def waiting(seconds: str) -> tuple[Argument, ...]:
    """The options of a command that can wait, so many seconds unless another number is given."""
    return (
        Argument("--wait", "wait for what becomes of it; the exit code is 1 when that is not what was asked for", Takes.NOTHING),
        Argument("--timeout", "how many seconds `--wait` waits at most", default=seconds),
    )


@dataclass(frozen=True)
class Request:
    """An annotation that asks, its value, and the annotation that answers."""

    annotation: str
    value: str
    answer: str


def ask(call: Call, kind: Kind, name: str, request: Request, sentence: str) -> Answer:
    """Asks, and with `--wait` waits for the answer. One that was refused, or that nobody gave, is WRONG."""
    seconds = timeout_seconds(call)
    asked = carry_out(call, [annotate(kind, name, {request.annotation: request.value}, sentence)])
    if not call.given.wait or call.given.dry_run:
        return asked
    return added(asked, f"{kind.name}/{name}", wait_until(call, kind, name, lambda item: answer_in(item, request), seconds))


@dataclass(frozen=True)
class Outcome:
    """What a wait came to."""

    sentence: str
    good: bool


def answer_in(item: Json, request: Request) -> Outcome | None:
    """The operator's answer; None while the request stands."""
    if annotation(item, request.annotation) is not None:
        return None
    said = annotation(item, request.answer) or "somebody took the request off before it was answered"
    return Outcome(said, said.startswith("done"))


def wait_until(call: Call, kind: Kind, name: str, outcome_of: Callable[[Json], Outcome | None], seconds: int) -> Outcome:
    """Looks at a resource each second until there is an outcome, at most so many times."""
    for _ in range(seconds):
        item = call.cluster.get(kind, name)
        if item is None:
            return Outcome("it was deleted meanwhile", good=False)
        found = outcome_of(item)
        if found is not None:
            return found
        call.pause(LOOK_SECONDS)
    return Outcome(f"nothing came of it within {seconds} s; look at `status`, and whether the operator runs", good=False)


def added(answer: Answer, label: str, outcome: Outcome) -> Answer:
    """An answer, and what a wait came to."""
    document = {**answer.document, "outcome": outcome.sentence}
    text = "\n".join(part for part in (answer.text, f"{label}: {outcome.sentence}") if part)
    return replace(answer, text=text, document=document, exit_code=answer.exit_code if outcome.good else WRONG)


def timeout_seconds(call: Call) -> int:
    """The value of `--timeout`."""
    written = str(call.given.timeout)
    if not written.isdecimal() or not int(written):
        raise BadInputError(f"--timeout {written}: give whole seconds, 1 or more")
    return int(written)
