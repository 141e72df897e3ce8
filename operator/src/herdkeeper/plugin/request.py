"""Requests to the operator by annotation. It answers each once, with another annotation, and removes the request."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from herdkeeper.plugin.change import annotate, carry_out
from herdkeeper.plugin.cluster import NoAnswerError
from herdkeeper.plugin.command import FINE, WRONG, Answer, Argument, BadInputError, Call, Takes
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
    """Send a request, and with `--wait` wait for the answer. A refusal, or a missing answer, is WRONG; a request without one stays."""
    timeout_seconds(call)
    # Removes the answer to an earlier request, which must not be taken for the answer to this one.
    asked = carry_out(call, [annotate(kind, name, {request.annotation: request.value, request.answer: None}, sentence)])
    if not call.given.wait or call.given.dry_run:
        return asked
    answer = awaited(call, asked, Awaited(kind, name, lambda item: answer_in(item, request)))
    if answer.exit_code == FINE:
        return answer
    try:
        present = call.cluster.get(kind, name)
        if present is None or annotation(present, request.annotation) is None:
            return answer
    except NoAnswerError:
        pass  # it may stay, and the way to take it back is of use
    of_it = f"{kind.name.lower()} {name} --namespace {call.cluster.namespace}"
    stays = f"the request stays until the operator answers it; to take it back: kubectl annotate {of_it} {request.annotation}-"
    return replace(
        answer, text=f"{answer.text}; {stays}", document={**answer.document, "outcome": f"{answer.document['outcome']}; {stays}"}
    )


@dataclass(frozen=True)
class Outcome:
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
    """Returns the operator's answer. None while the request is unanswered."""
    if annotation(item, request.annotation) is not None:
        return None
    said = annotation(item, request.answer) or "the request was removed before it was answered"
    return Outcome(said, said.startswith("done"))


def wait_until(call: Call, kind: Kind, name: str, outcome_of: Callable[[Json], Outcome | None], seconds: int) -> Outcome:
    """Read a resource each second until there is an outcome, at most so many seconds. One that is made anew meanwhile is another one. An
    API server that does not answer is asked again.
    """
    uids: set[str | None] = set()
    end, unanswered = time.monotonic() + seconds, ""
    for _ in range(seconds):
        if time.monotonic() >= end:
            break
        try:
            item = call.cluster.get(kind, name)
        except NoAnswerError as error:
            call.tell("" if unanswered else "the API server does not answer; it is asked again")
            unanswered = f"{error}; "
            call.pause(LOOK_SECONDS)
            continue
        unanswered = ""
        if item is None:
            return Outcome(f"the {kind.name} was deleted", good=False)
        uids.add(item["metadata"].get("uid"))
        if len(uids) > 1:
            return Outcome(f"the {kind.name} was deleted, and another one of its name was made", good=False)
        found = outcome_of(item)
        if found is not None:
            return found
        call.pause(LOOK_SECONDS)
    return Outcome(f"no result within {seconds} s; {unanswered}see `status`, and check that the operator runs", good=False)


def awaited(call: Call, answer: Answer, subject: Awaited) -> Answer:
    """Returns what a wait came to; without `--wait`, the answer. Tells the answer at once, then what the resource says, as it changes."""
    if answer.exit_code != FINE or not call.given.wait or call.given.dry_run:
        return answer
    call.tell(answer.text)
    label = subject.label or f"{subject.kind.name}/{subject.name}"
    told: list[str] = []

    def look(item: Json) -> Outcome | None:
        if item["metadata"].get("deletionTimestamp"):
            # its status loses entries, which looks like success to who waits until one is gone
            return Outcome(f"the {subject.kind.name} is being deleted", good=False)
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
    written = str(call.given.timeout)
    if not written.isdecimal() or not int(written):
        raise BadInputError(f"--timeout {written}: give whole seconds, 1 or more")
    return int(written)
