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
    timeout_seconds(call)
    asked = carry_out(call, [annotate(kind, name, {request.annotation: request.value}, sentence)])
    if not call.given.wait or call.given.dry_run:
        return asked
    return awaited(call, asked, Awaited(kind, name, lambda item: answer_in(item, request)))


@dataclass(frozen=True)
class Outcome:
    """What a wait came to."""

    sentence: str
    good: bool


def message_of(item: Json) -> str:
    """What a resource says of itself; steps of the operator, which `Progressing` tells, are not in it."""
    return str((item.get("status") or {}).get("message") or "")


@dataclass(frozen=True)
class Awaited:
    """A resource that is waited for. `outcome_of` tells what it came to, None while it has not; `said_of` what is told meanwhile.

    `label` is how it is called; kind and name when empty.
    """

    kind: Kind
    name: str
    outcome_of: Callable[[Json], Outcome | None]
    said_of: Callable[[Json], str] = message_of
    label: str = ""


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


def awaited(call: Call, answer: Answer, subject: Awaited) -> Answer:
    """An answer, and what a wait came to. The answer's text is written at once, and then what the resource says, whenever that changes."""
    call.tell(answer.text)
    label = subject.label or f"{subject.kind.name}/{subject.name}"
    told: list[str] = []

    def look(item: Json) -> Outcome | None:
        outcome, now = subject.outcome_of(item), subject.said_of(item)
        if outcome is None and now not in told[-1:]:
            # what it said before it was asked is no news
            if told:
                call.tell(f"{label}: {now}" if now else "")
            told.append(now)
        return outcome

    outcome = wait_until(call, subject.kind, subject.name, look, timeout_seconds(call))
    document = {**answer.document, "outcome": outcome.sentence}
    return replace(answer, text=f"{label}: {outcome.sentence}", document=document, exit_code=answer.exit_code if outcome.good else WRONG)


def timeout_seconds(call: Call) -> int:
    """The value of `--timeout`."""
    written = str(call.given.timeout)
    if not written.isdecimal() or not int(written):
        raise BadInputError(f"--timeout {written}: give whole seconds, 1 or more")
    return int(written)
