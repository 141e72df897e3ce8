"""Requests to the operator by annotation. It answers each once, with another annotation, and removes the request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from herdkeeper.plugin.change import annotate, carry_out
from herdkeeper.plugin.command import WRONG, Answer, Argument, BadInputError, Call, Takes
from herdkeeper.plugin.kinds import Kind
from herdkeeper.shared.objects import Json, annotation

LOOK_SECONDS = 1.0


def waiting(seconds: str) -> tuple[Argument, ...]:
    """Returns the options of a command that can wait, with a default in seconds."""
    return (
        Argument("--wait", "wait for the result; the exit code is 1 if the request was not fulfilled", Takes.NOTHING),
        Argument("--timeout", "maximum seconds for `--wait`", default=seconds),
    )


@dataclass(frozen=True)
class Request:
    """The annotation of a request, its value, and the annotation of the answer."""

    annotation: str
    value: str
    answer: str


def ask(call: Call, kind: Kind, name: str, request: Request, sentence: str) -> Answer:
    """Send a request, and with `--wait` wait for the answer. A refusal, or a missing answer, is WRONG."""
    seconds = timeout_seconds(call)
    asked = carry_out(call, [annotate(kind, name, {request.annotation: request.value}, sentence)])
    if not call.given.wait or call.given.dry_run:
        return asked
    return added(asked, f"{kind.name}/{name}", wait_until(call, kind, name, lambda item: answer_in(item, request), seconds))


@dataclass(frozen=True)
class Outcome:
    """The result of a wait."""

    sentence: str
    good: bool


def answer_in(item: Json, request: Request) -> Outcome | None:
    """Returns the operator's answer. None while the request is unanswered."""
    if annotation(item, request.annotation) is not None:
        return None
    said = annotation(item, request.answer) or "the request was removed before it was answered"
    return Outcome(said, said.startswith("done"))


def wait_until(call: Call, kind: Kind, name: str, outcome_of: Callable[[Json], Outcome | None], seconds: int) -> Outcome:
    """Read a resource each second until there is an outcome, at most so many times."""
    for _ in range(seconds):
        item = call.cluster.get(kind, name)
        if item is None:
            return Outcome("it was deleted", good=False)
        found = outcome_of(item)
        if found is not None:
            return found
        call.pause(LOOK_SECONDS)
    return Outcome(f"no result within {seconds} s; see `status`, and check that the operator runs", good=False)


def added(answer: Answer, label: str, outcome: Outcome) -> Answer:
    """Returns an answer with the result of a wait."""
    document = {**answer.document, "outcome": outcome.sentence}
    text = "\n".join(part for part in (answer.text, f"{label}: {outcome.sentence}") if part)
    return replace(answer, text=text, document=document, exit_code=answer.exit_code if outcome.good else WRONG)


def timeout_seconds(call: Call) -> int:
    """Returns the value of `--timeout`."""
    written = str(call.given.timeout)
    if not written.isdecimal() or not int(written):
        raise BadInputError(f"--timeout {written}: give whole seconds, 1 or more")
    return int(written)
