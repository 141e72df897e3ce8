"""Finds what is wrong with stacks, the most likely cause first, and the newest warnings. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from herdkeeper.plugin.reasons import reason_of
from herdkeeper.plugin.stack_tree import Part, Trouble, condition, is_starting_or_stopping, label, said, without_replaced
from herdkeeper.shared.objects import Json, is_ready, pod_trouble

MOST_EVENTS = 15


@dataclass(frozen=True)
class Finding:
    """A problem of a resource or pod, and what to do; `do` is empty if the sentence says it."""

    about: str
    sentence: str
    reason: str = ""
    do: str = ""

    @property
    def text(self) -> str:
        advice = f"\n    → {self.do}" + (f" (explain {self.reason})" if self.reason else "") if self.do else ""
        return f"{self.about}: {self.sentence}{advice}"


def findings(parts: Iterable[Part]) -> Iterator[Finding]:
    """Yields the problems in a tree of stacks. A resource depends on those above it, so the first problem is the most likely cause."""
    for part in parts:
        for each in part.walk():
            yield from (_finding(each, trouble) for trouble in each.troubles)


def _finding(part: Part, trouble: Trouble) -> Finding:
    condition = f"{trouble.condition}: " if trouble.condition else ""
    return Finding(part.label, f"{condition}{trouble.sentence}", trouble.reason, trouble.do)


def notes(resources: Iterable[Json], found: Sequence[Finding]) -> Iterator[str]:
    """Yields what the operator does or waits for, and what somebody has stopped or deletes, unless a finding tells it. None of it is wrong,
    but it explains why nothing else happens: a drain may wait for a person.
    """
    for item in resources:
        if item["metadata"].get("deletionTimestamp"):
            yield f"{label(item)}: {said(item)}"
            continue
        progressing = condition(item, "Progressing")
        if progressing is None or any(progressing["message"] in each.sentence for each in found if each.about == label(item)):
            continue
        reason = reason_of(progressing["reason"])
        if progressing["status"] == "True" or (reason is not None and reason.is_asked_for):
            yield f"{label(item)}: {progressing['reason']}: {progressing['message']}"


def operator_findings(pods: Sequence[Json], namespace: str) -> Iterator[Finding]:
    if not pods:
        yield Finding(
            "operator", f"it has no pod in the namespace {namespace}", do="Install it, or name its namespace with --operator-namespace."
        )
    elif not any(is_ready(pod) for pod in pods):
        for pod in pods:
            name = str(pod["metadata"]["name"])
            do = f"See `kubectl describe pod {name} --namespace {namespace}`, and its log."
            yield Finding(f"operator {name}", pod_trouble(pod), do=do)


def failing_pods(pods: Sequence[Json], now: datetime.datetime) -> Iterator[Json]:
    """Yields the pods that neither serve nor have succeeded, and are not just starting or stopping."""
    failing = (pod for pod in without_replaced(pods) if not is_ready(pod) and (pod.get("status") or {}).get("phase") != "Succeeded")
    return (pod for pod in failing if not is_starting_or_stopping(pod, now))


def newest_warnings(events: Sequence[Json]) -> list[str]:
    """Returns the newest warnings, oldest first, or else the newest events."""
    warnings = [event for event in events if event.get("type") == "Warning"]
    return [_event(event) for event in sorted(warnings or events, key=_time)[-MOST_EVENTS:]]


def _event(event: Json) -> str:
    about = event["involvedObject"]
    # a probe's message is what its program wrote, over several lines
    message = " ".join(str(event.get("message") or "").split())
    what = f"{about.get('kind', '')}/{about.get('name', '')} {event.get('reason', '')}: {message}"
    return f"{_time(event)} {event.get('type', '')} {what}"


def _time(event: Json) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or "")
