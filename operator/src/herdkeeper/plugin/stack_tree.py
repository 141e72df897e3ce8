"""The stacks of a namespace as a tree: what is there, whether it is as declared, what is wrong and what to do. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from herdkeeper.plugin.kinds import AUDIT, BOOKKEEPER, CHECKPOINT, HERDDB, SCHEDULED_AUDIT, SCHEDULED_CHECKPOINT, TABLESPACE, ZOOKEEPER
from herdkeeper.plugin.reasons import EXPLAINED, reason_of
from herdkeeper.shared.objects import Json, is_made_for, is_ready, pod_trouble
from herdkeeper.shared.reason import Reason

PARENTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    BOOKKEEPER.name: (ZOOKEEPER.name, ("zooKeeperRef",)),
    HERDDB.name: (BOOKKEEPER.name, ("bookKeeperRef",)),
    TABLESPACE.name: (HERDDB.name, ("herdDBRef",)),
    CHECKPOINT.name: (TABLESPACE.name, ("tablespaceRef",)),
    SCHEDULED_CHECKPOINT.name: (TABLESPACE.name, ("template", "tablespaceRef")),
    AUDIT.name: (BOOKKEEPER.name, ("bookKeeperRef",)),
    SCHEDULED_AUDIT.name: (BOOKKEEPER.name, ("template", "bookKeeperRef")),
}
"""By kind: the kind below which it stands, and the field of its spec that names that resource."""
RUNS = (CHECKPOINT.name, AUDIT.name)
"""Kinds that run once and stay as a record."""


class State(Enum):
    """How a part of a stack is."""

    FINE = "fine"
    WORKING = "working"
    WRONG = "wrong"


@dataclass(frozen=True)
class Trouble:
    """Something that is not as it should be. `condition` is empty for a pod; so is `do` where the message says it all."""

    condition: str
    reason: str
    message: str
    do: str

    @property
    def sentence(self) -> str:
        """Reason and message."""
        return f"{self.reason}: {self.message}" if self.reason else self.message


@dataclass(frozen=True)
class Part:
    """A resource, pod or replica in the tree, with what belongs to it."""

    label: str
    state: State
    said: str
    troubles: tuple[Trouble, ...] = ()
    parts: tuple[Part, ...] = ()

    def walk(self) -> Iterator[Part]:
        """This part and all below it."""
        yield self
        for part in self.parts:
            yield from part.walk()


def stacks(resources: Sequence[Json], pods: Sequence[Json]) -> tuple[Part, ...]:
    """The roots of the tree: resources that stand below no other one that is there."""
    shown = tuple(_without_earlier_runs(resources))
    there = {(str(item["kind"]), str(item["metadata"]["name"])) for item in shown}
    roots = [item for item in shown if parent_of(item) not in there]
    return tuple(_part(item, shown, pods) for item in roots)


def worst(parts: Iterable[Part]) -> State:
    """WRONG if anything is; else WORKING if anything is."""
    states = {each.state for part in parts for each in part.walk()}
    return next((state for state in (State.WRONG, State.WORKING) if state in states), State.FINE)


def document(part: Part) -> Json:
    """A part and those below it for programs."""
    troubles = [{"condition": each.condition, "reason": each.reason, "message": each.message, "do": each.do} for each in part.troubles]
    return {
        "name": part.label,
        "state": part.state.value,
        "message": part.said,
        **({"troubles": troubles} if troubles else {}),
        **({"parts": [document(below) for below in part.parts]} if part.parts else {}),
    }


def label(item: Json) -> str:
    """`Kind/name`."""
    return f"{item['kind']}/{item['metadata']['name']}"


def condition(item: Json, kind: str) -> Json | None:
    """A condition of a resource's status; None when it is not there."""
    return next((entry for entry in _conditions(item) if entry["type"] == kind), None)


def troubles(item: Json) -> tuple[Trouble, ...]:
    """What is wrong with a resource: conditions that do not hold, once each."""
    if not _conditions(item):
        why = "the operator has not looked at it yet"
        return (Trouble("Ready", "", why, "Look whether the operator runs, and watches this namespace."),)
    if _not_seen(item):
        return (
            Trouble(
                "Ready", "", "the operator has not seen its present generation yet", "Wait; if it lasts, look whether the operator runs."
            ),
        )
    found = [_trouble(entry) for entry in _conditions(item) if _is_wrong(item, entry)]
    by_sentence = {each.sentence: each for each in reversed(found)}
    return tuple(each for each in found if by_sentence[each.sentence] is each)


def _trouble(entry: Json) -> Trouble:
    reason = reason_of(entry["reason"])
    return Trouble(str(entry["type"]), str(entry["reason"]), str(entry["message"]), EXPLAINED[reason].do if reason is not None else "")


def _is_wrong(item: Json, entry: Json) -> bool:
    """Whether a condition tells of something wrong. Progressing does only when it needs a person; a run that goes on is not Ready yet."""
    reason = reason_of(entry["reason"])
    needs_person = reason is not None and reason.needs_person
    if entry["type"] == "Progressing":
        return needs_person or reason is Reason.ACTION_FAILED
    if entry["type"] == "Ready":
        return needs_person if item["kind"] in RUNS else entry["status"] != "True"
    return bool(entry["status"] == "False")


def _conditions(item: Json) -> list[Json]:
    return (item.get("status") or {}).get("conditions") or []


def _not_seen(item: Json) -> bool:
    """Whether the status speaks of an earlier spec."""
    ready = condition(item, "Ready")
    return ready is not None and ready.get("observedGeneration", 0) < item["metadata"].get("generation", 0)


def parent_of(item: Json) -> tuple[str, str] | None:
    """Kind and name of the resource that this one rests on; None where it rests on none of this group."""
    if item["kind"] not in PARENTS:
        return None
    kind, path = PARENTS[item["kind"]]
    found = item.get("spec") or {}
    for step in path:
        found = found.get(step) or {}
    return (kind, str(found["name"])) if "name" in found else None


def _part(item: Json, resources: Sequence[Json], pods: Sequence[Json]) -> Part:
    own = (item["kind"], item["metadata"]["name"])
    below = tuple(_part(other, resources, pods) for other in resources if parent_of(other) == own)
    mine = (pod for pod in pods if is_made_for(pod, *own) and (pod.get("status") or {}).get("phase") != "Succeeded")
    found = troubles(item)
    parts = (*(_pod(item, pod) for pod in mine), *_replicas(item), *below)
    return Part(label(item), _state(item, found), said(item), found, parts)


def _state(item: Json, found: tuple[Trouble, ...]) -> State:
    if found:
        return State.WRONG
    progressing = condition(item, "Progressing")
    busy = progressing is not None and progressing["status"] == "True"
    unfinished = item["kind"] in RUNS and (item.get("status") or {}).get("phase") != "Succeeded"
    return State.WORKING if busy or unfinished or item["metadata"].get("deletionTimestamp") else State.FINE


def said(item: Json) -> str:
    """The state in one sentence, and what is done or waited for, or that somebody stopped it."""
    if item["metadata"].get("deletionTimestamp"):
        return "is being deleted"
    message = str((item.get("status") or {}).get("message") or "")
    progressing = condition(item, "Progressing")
    if progressing is None or progressing["message"] in message:
        return message
    reason = reason_of(progressing["reason"])
    if progressing["status"] != "True" and not (reason is not None and reason.is_asked_for):
        return message
    return f"{message}; {progressing['reason']}: {progressing['message']}"


def _pod(owner: Json, pod: Json) -> Part:
    name, node = str(pod["metadata"]["name"]), str((pod.get("spec") or {}).get("nodeName") or "no node")
    role = _role(owner, name)
    said = f"{node}, {role}" if role else node
    if is_ready(pod):
        return Part(name, State.FINE, said)
    if owner["kind"] in RUNS and (pod.get("status") or {}).get("phase") == "Running":
        return Part(name, State.WORKING, said)
    return Part(name, State.WRONG, said, (Trouble("", "", pod_trouble(pod), ""),))


def _role(owner: Json, pod: str) -> str:
    """What a status says of a pod: ZooKeeper's leader, or the state of a bookie."""
    status = owner.get("status") or {}
    if status.get("leader") == pod:
        return "leader"
    name = owner["metadata"]["name"]
    states = (bookie for bookie in status.get("bookies") or [] if pod == f"{name}-bookie-{bookie['number']}-0")
    return next((str(bookie["state"]).lower() for bookie in states), "")


def _replicas(item: Json) -> Iterator[Part]:
    """The copies of a Tablespace."""
    if item["kind"] != TABLESPACE.name:
        return
    for replica in (item.get("status") or {}).get("replicas") or []:
        verdict = replica.get("verdict")
        said = {"Equal": "equal to the log", "Different": "other rows than the log or the leader"}.get(str(verdict), "")
        lsn = replica.get("verifiedLsn")
        at = f" at LSN {lsn['ledgerId']},{lsn['entryId']}" if lsn else ""
        wrong = verdict == "Different" or replica["role"] in ("failed", "removed")
        working = replica["role"] not in ("leader", "follower")
        state = State.WRONG if wrong else State.WORKING if working else State.FINE
        yield Part(f"{replica['role']} on {replica['node']}", state, f"{said}{at}" if said else "")


def _without_earlier_runs(resources: Sequence[Json]) -> Iterator[Json]:
    """All resources, but of runs only those that are not over and the newest one of each kind and parent."""
    newest: dict[tuple[object, ...], Json] = {}
    for item in resources:
        if item["kind"] in RUNS:
            key = (item["kind"], parent_of(item))
            newest[key] = max((newest.get(key, item), item), key=lambda run: str(run["metadata"].get("creationTimestamp", "")))
    for item in resources:
        over = (item.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if item["kind"] not in RUNS or not over or newest[(item["kind"], parent_of(item))] is item:
            yield item
