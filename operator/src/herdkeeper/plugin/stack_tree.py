"""The stacks of a namespace as a tree: what exists, its state, what is wrong and what to do. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from herdkeeper.plugin.kinds import AUDIT, CHECKPOINT, SCHEDULED_AUDIT, SCHEDULED_CHECKPOINT, TABLESPACE
from herdkeeper.plugin.reasons import EXPLAINED, reason_of
from herdkeeper.shared import names
from herdkeeper.shared.objects import STARTING, Json, is_made_for, is_ready, pod_trouble, stopping
from herdkeeper.shared.objects import label as label_of
from herdkeeper.shared.reason import Bearing, Reason
from herdkeeper.shared.references import REFERENCES, referred_name
from herdkeeper.shared.time import moment_of

_RUN_OF = {SCHEDULED_CHECKPOINT.name: CHECKPOINT.name, SCHEDULED_AUDIT.name: AUDIT.name}
"""By schedule: the kind of its runs, whose spec is its template."""
RUNS = (CHECKPOINT.name, AUDIT.name)
"""Kinds that run once and remain as a record."""
STUCK = (Reason.ACTION_FAILED, Reason.DRAIN_FAILED, Reason.UNREADABLE)
"""Reasons that need a person if they last, which the operator can't know."""
_LACKS_COPIES = {"critical": "Critical", "underReplicated": "UnderReplicated"}
"""Severities of findings that an alert is about, too, by their name in a status."""
STARTUP_SECONDS = 120.0
"""How long a pod may take until it is Ready. After that it is told as wrong."""
STATUS_SECONDS = 10.0
"""How long a status may show a pod as it was before it became Ready."""
CREATION_SECONDS = 300.0
"""The same of a resource, which waits for those below it."""
WRONG_ROLES = {"failed": "its node failed to boot it or to follow the log", "removed": "it differs, and is no longer a replica"}


class State(Enum):
    """State of a part of a stack."""

    FINE = "fine"
    WORKING = "working"
    WRONG = "wrong"


@dataclass(frozen=True)
class Trouble:
    """A problem. `condition` is empty for a pod; `do` is empty if the message says it all."""

    condition: str
    reason: str
    message: str
    do: str

    @property
    def sentence(self) -> str:
        return f"{self.reason}: {self.message}" if self.reason else self.message


@dataclass(frozen=True)
class Part:
    """A resource, pod or replica in the tree, with its children."""

    label: str
    state: State
    said: str
    troubles: tuple[Trouble, ...] = ()
    parts: tuple[Part, ...] = ()

    def walk(self) -> Iterator[Part]:
        yield self
        for part in self.parts:
            yield from part.walk()


def stacks(resources: Sequence[Json], pods: Sequence[Json], now: datetime.datetime) -> tuple[Part, ...]:
    """Returns the roots of the tree: resources without an existing parent. `now` tells what has only just begun to start."""
    shown = tuple(_without_earlier_runs(resources))
    there = {_key(item) for item in shown}
    roots = [item for item in shown if parent_of(item) not in there]
    present = tuple(without_replaced(pods))
    return tuple(_part(item, shown, present, now) for item in roots)


def without_replaced(pods: Sequence[Json]) -> Iterator[Json]:
    """Yields all pods but failed ones that another one replaced: Kubernetes keeps e.g. each evicted pod, and a Job's first try."""
    newest: dict[tuple[str | None, ...], str] = {}
    for pod in pods:
        newest[_purpose(pod)] = max(newest.get(_purpose(pod), ""), _created(pod))
    for pod in pods:
        if (pod.get("status") or {}).get("phase") != "Failed" or _created(pod) >= newest[_purpose(pod)]:
            yield pod


def _purpose(pod: Json) -> tuple[str | None, ...]:
    """What tells the pods of one Deployment or Job from others, and those of a StatefulSet from each other."""
    labels = (names.OWNER_KIND_LABEL, names.OWNER_NAME_LABEL, names.COMPONENT_LABEL, names.JOB_NAME_LABEL, names.POD_NAME_LABEL)
    return tuple(label_of(pod, name) for name in labels)


def is_starting_or_stopping(pod: Json, now: datetime.datetime) -> bool:
    """Returns whether a pod is starting or stopping, as in every roll, and still has time for it."""
    if (end := stopping(pod)) is not None:
        return now.timestamp() <= end.killed_at
    return _is_young(pod, STARTUP_SECONDS, now) and not is_ready(pod) and pod_trouble(pod) == STARTING


def _is_young(item: Json, seconds: float, now: datetime.datetime) -> bool:
    created = moment_of(item["metadata"].get("creationTimestamp"))
    return created is not None and (now - created).total_seconds() <= seconds


def worst(parts: Iterable[Part]) -> State:
    """Returns WRONG if any part is, else WORKING if any is."""
    states = {each.state for part in parts for each in part.walk()}
    return next((state for state in (State.WRONG, State.WORKING) if state in states), State.FINE)


def document(part: Part) -> Json:
    """Returns a part and its descendants for programs."""
    troubles = [{"condition": each.condition, "reason": each.reason, "message": each.message, "do": each.do} for each in part.troubles]
    return {
        "name": part.label,
        "state": part.state.value,
        "message": part.said,
        **({"troubles": troubles} if troubles else {}),
        **({"parts": [document(below) for below in part.parts]} if part.parts else {}),
    }


def label(item: Json) -> str:
    return f"{item['kind']}/{item['metadata']['name']}"


def condition(item: Json, kind: str) -> Json | None:
    return next((entry for entry in _conditions(item) if entry["type"] == kind), None)


def troubles(item: Json) -> tuple[Trouble, ...]:
    """Returns the problems of a resource: conditions that do not hold, without duplicates."""
    if not _conditions(item):
        why = "the operator has not reconciled it yet"
        return (Trouble("Ready", "", why, "Check that the operator runs and watches this namespace."),)
    if _is_outdated(item):
        return (
            Trouble(
                "Ready", "", "the operator has not seen its current generation yet", "Wait; if it lasts, check that the operator runs."
            ),
        )
    found = [_trouble(entry) for entry in _conditions(item) if _is_wrong(item, entry)]
    by_sentence = {each.sentence: each for each in reversed(found)}
    return tuple(each for each in found if by_sentence[each.sentence] is each)


def _trouble(entry: Json) -> Trouble:
    reason = reason_of(entry["reason"])
    return Trouble(str(entry["type"]), str(entry["reason"]), str(entry["message"]), EXPLAINED[reason].do if reason is not None else "")


def _is_wrong(item: Json, entry: Json) -> bool:
    """Whether a condition shows a problem. Progressing only if it needs a person and Ready does not say it. An active run is not Ready."""
    reason = reason_of(entry["reason"])
    needs_person = reason is not None and reason.needs_person
    if entry["type"] == "Progressing":
        ready = condition(item, "Ready")
        told = ready is not None and ready["reason"] == entry["reason"] and _is_wrong(item, ready)
        return (needs_person or reason in STUCK) and not told
    if entry["type"] == "Ready":
        return needs_person if item["kind"] in RUNS else entry["status"] != "True"
    return entry["status"] == "False" or (entry["status"] == "Unknown" and reason is Reason.UNREADABLE)


def _conditions(item: Json) -> list[Json]:
    return (item.get("status") or {}).get("conditions") or []


def _is_outdated(item: Json) -> bool:
    """Returns whether the status is about an earlier spec."""
    ready = condition(item, "Ready")
    return ready is not None and ready.get("observedGeneration", 0) < item["metadata"].get("generation", 0)


def parent_of(item: Json) -> tuple[str, str] | None:
    """Returns kind and name of the resource on which this one depends, or None if there is none of this group."""
    kind, spec = item["kind"], item.get("spec") or {}
    if kind in _RUN_OF:
        kind, spec = _RUN_OF[kind], spec.get("template") or {}
    name = referred_name(kind, spec)
    return None if name is None else (REFERENCES[kind][1], name)


def _part(item: Json, resources: Sequence[Json], pods: Sequence[Json], now: datetime.datetime, restarts: bool = False) -> Part:
    """`restarts`: a server of a resource above it does."""
    own = _key(item)
    mine = [pod for pod in pods if is_made_for(pod, *own) and (pod.get("status") or {}).get("phase") != "Succeeded"]
    restarts = restarts or any(_restarts(pod, now) for pod in mine)
    below = tuple(_part(other, resources, pods, now, restarts) for other in resources if parent_of(other) == own)
    parts = (*(_pod(item, pod, is_starting_or_stopping(pod, now)) for pod in mine), *_replicas(item), *below)
    found = (*troubles(item), *_found_by_audit(item, resources))
    if found and (restarts or _is_young(item, CREATION_SECONDS, now)) and all(map(_passes, found)):
        return Part(label(item), State.WORKING, said(item) or found[0].message, (), parts)
    return Part(label(item), _state(item, found), said(item), found, parts)


def _restarts(pod: Json, now: datetime.datetime) -> bool:
    """Returns whether a server restarts, as in every roll, or has only just done so: its resource's status comes a moment later."""
    if label_of(pod, names.JOB_NAME_LABEL) is not None:
        return False
    ready = condition(pod, "Ready")
    since = moment_of(ready.get("lastTransitionTime")) if ready is not None and is_ready(pod) else None
    return is_starting_or_stopping(pod, now) or (since is not None and (now - since).total_seconds() <= STATUS_SECONDS)


def _passes(trouble: Trouble) -> bool:
    """Returns whether a trouble is what every new resource has: it is not reconciled yet, or waits for something."""
    reason = reason_of(trouble.reason) if trouble.reason else None
    unfinished = reason is not None and reason.bearing is Bearing.UNFINISHED and reason not in STUCK
    return bool(trouble.condition) and (unfinished or not trouble.reason)


def _found_by_audit(item: Json, resources: Sequence[Json]) -> Iterator[Trouble]:
    """Yields a trouble if an audit of the present cluster found entries without enough good copies, and did not repair them."""
    status = item.get("status") or {}
    if item["kind"] != AUDIT.name or status.get("phase") != "Succeeded":
        return
    instances = {str((other.get("status") or {}).get("instanceId")) for other in resources if _key(other) == parent_of(item)}
    if str(status.get("instanceId")) not in instances:
        return
    listed, counts = status.get("findings") or [], status.get("findingsBySeverity") or {}
    unrepaired = [each for each in listed if each.get("repair") != "Repaired"]
    # Of findings that the status has no room for, only the number of those that were not repaired is known.
    others = sum(counts.values()) - len(listed)
    if "replicasRepaired" in status:
        others = min(others, status.get("findingsNotRepaired", 0) - sum("repair" in each for each in unrepaired))
    found: list[str] = []
    for name, severity in _LACKS_COPIES.items():
        unlisted = (counts.get(name) or 0) - sum(each["severity"] == severity for each in listed)
        number = sum(each["severity"] == severity for each in unrepaired) + max(0, min(unlisted, others))
        found += [f"{number} {severity}"] if number else []
    if found:
        bookkeeper = item["spec"]["bookKeeperRef"]["name"]
        repair = f"`audit {bookkeeper} --repair Repair` writes missing copies again where a good one is left."
        do = f"Look at its findings: docs/audit.md says what each kind means. {repair}"
        yield Trouble("", "", f"it found entries without enough good copies: {', '.join(found)}", do)


def _key(item: Json) -> tuple[str, str]:
    return str(item["kind"]), str(item["metadata"]["name"])


def _state(item: Json, found: tuple[Trouble, ...]) -> State:
    if found:
        return State.WRONG
    progressing = condition(item, "Progressing")
    busy = progressing is not None and progressing["status"] == "True"
    unfinished = item["kind"] in RUNS and (item.get("status") or {}).get("phase") != "Succeeded"
    return State.WORKING if busy or unfinished or item["metadata"].get("deletionTimestamp") else State.FINE


def said(item: Json) -> str:
    """The state in one sentence, and what is done or waited for, or that somebody stopped it."""
    deleted = bool(item["metadata"].get("deletionTimestamp"))
    message = "is being deleted" if deleted else str((item.get("status") or {}).get("message") or "")
    progressing = condition(item, "Progressing")
    if progressing is None or progressing["message"] in message or (deleted and _is_outdated(item)):
        return message
    reason = reason_of(progressing["reason"])
    if progressing["status"] != "True" and not (reason is not None and reason.is_asked_for):
        return message
    return f"{message}; {progressing['reason']}: {progressing['message']}"


def _pod(owner: Json, pod: Json, transient: bool) -> Part:
    name, node = str(pod["metadata"]["name"]), str((pod.get("spec") or {}).get("nodeName") or "no node")
    role = _role(owner, name)
    said = f"{node}, {role}" if role else node
    if transient:
        return Part(name, State.WORKING, f"{node}, {pod_trouble(pod)}")
    if is_ready(pod):
        return Part(name, State.FINE, said)
    if owner["kind"] in RUNS and (pod.get("status") or {}).get("phase") == "Running":
        return Part(name, State.WORKING, said)
    return Part(name, State.WRONG, said, (Trouble("", "", pod_trouble(pod), ""),))


def _role(owner: Json, pod: str) -> str:
    """Returns the role of a pod by a status: ZooKeeper's leader, or the state of a bookie."""
    status = owner.get("status") or {}
    if status.get("leader") == pod:
        return "leader"
    name = owner["metadata"]["name"]
    states = (bookie for bookie in status.get("bookies") or [] if pod == f"{name}-bookie-{bookie['number']}-0")
    return next((str(bookie["state"]).lower() for bookie in states), "")


def _replicas(item: Json) -> Iterator[Part]:
    if item["kind"] != TABLESPACE.name:
        return
    for replica in (item.get("status") or {}).get("replicas") or []:
        verdict = replica.get("verdict")
        said = {"Equal": "equal to the log", "Different": "differs from the log or the leader"}.get(str(verdict), "")
        lsn = replica.get("verifiedLsn")
        at = f" at LSN {lsn['ledgerId']},{lsn['entryId']}" if lsn else ""
        said = f"{said}{at}" if said else ""
        wrong = WRONG_ROLES.get(replica["role"], said if verdict == "Different" else "")
        working = replica["role"] not in ("leader", "follower")
        state = State.WRONG if wrong else State.WORKING if working else State.FINE
        found = (Trouble("", "", wrong, "Read the log of its node." if replica["role"] == "failed" else ""),) if wrong else ()
        yield Part(f"{replica['role']} on {replica['node']}", state, said, found)


def _without_earlier_runs(resources: Sequence[Json]) -> Iterator[Json]:
    """Yields all resources, but of runs only active ones, the newest one per kind and parent, and audits whose findings still count."""
    newest: dict[tuple[object, ...], Json] = {}
    for item in resources:
        if item["kind"] in RUNS:
            key = (item["kind"], parent_of(item))
            newest[key] = max((newest.get(key, item), item), key=_created)
    for item in resources:
        over = (item.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        shown = item["kind"] not in RUNS or not over or newest[(item["kind"], parent_of(item))] is item
        if shown or (any(_found_by_audit(item, resources)) and not any(_covers(other, item) for other in resources)):
            yield item


def _covers(later: Json, audit: Json) -> bool:
    """Whether a later audit has looked at all that an earlier one had, and as closely: a sample, or an absent bookie, shows less."""
    if (later["kind"], parent_of(later)) != (audit["kind"], parent_of(audit)) or _created(later) <= _created(audit):
        return False
    status = later.get("status") or {}
    unread = status.get("replicasUnknown") or (status.get("findingsBySeverity") or {}).get("unknown")
    if status.get("phase") != "Succeeded" or unread or _depth(later) not in ("Deep", _depth(audit)):
        return False
    return _chosen_ledgers(later) in ((None, None), _chosen_ledgers(audit))


def _chosen_ledgers(audit: Json) -> tuple[object, object]:
    return sorted(audit["spec"].get("ledgers") or ()) or None, audit["spec"].get("filter") or None


def _depth(audit: Json) -> str:
    return str(audit["spec"].get("depth", "Deep"))


def _created(item: Json) -> str:
    return str(item["metadata"].get("creationTimestamp", ""))
