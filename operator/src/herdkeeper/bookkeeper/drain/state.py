"""Draining bookies: what was observed of each of them, and its next step."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, replace

from herdkeeper.bookkeeper.drain.build import RECORD_KEY, WRITTEN_KEY, is_kept
from herdkeeper.bookkeeper.drain.procedure import (
    CloseLedgers,
    ClusterState,
    DrainingBookie,
    JobState,
    MakeReadOnly,
    MarkDraining,
    Mode,
    Move,
    Restart,
    Round,
    Step,
    next_step,
)
from herdkeeper.bookkeeper.state.bookies import LedgersMetadata
from herdkeeper.codecs.bookkeeper.placement import PlacementRule
from herdkeeper.codecs.bookkeeper.share import Share, unread_shares
from herdkeeper.planning.actions import Wait
from herdkeeper.shared.counted import counted
from herdkeeper.shared.names import BookKeeperNames
from herdkeeper.shared.objects import STARTING, Json, Objects, ended_in, job_ended, pod_trouble, pods_of_job, shortened
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

LATE_SECONDS = 60.0
"""A Job's first pod is not made later than that, unless something refuses it."""
_MORE_ROOM = "make room on the nodes, or set spec.pods.priorityClassName or more spec.resources, and delete this Job"
_HELD = (Reason.BOOKIE_DOWN, Reason.OPEN_LEDGERS, Reason.DRAIN_FAILED)
"""Reasons of a drain that may wait for ever, and only for itself."""


@dataclass(frozen=True)
class Drain:
    """A draining bookie: what was observed of it, and its next step."""

    number: int
    bookie: DrainingBookie | Unknown
    step: Step


def drains_of(bookies: Mapping[int, DrainingBookie | Unknown], cluster_state: ClusterState | Unknown) -> tuple[Drain, ...]:
    """Returns the drains of these bookies, by number, the one being emptied first. One Job moves ledgers at a time."""
    drains = (Drain(number, bookie, _step(bookie, bookies, cluster_state)) for number, bookie in bookies.items())
    ordered = sorted(drains, key=_order)
    first = ordered[0].number if ordered else None
    moving = next((drain.number for drain in ordered if _moves(drain.bookie)), None)
    return tuple(_waiting_for(moving, drain) if drain.number == first else _after(first, drain) for drain in ordered)


def _step(bookie: DrainingBookie | Unknown, bookies: Mapping[int, DrainingBookie | Unknown], cluster_state: ClusterState | Unknown) -> Step:
    others = tuple(
        other.bookie_id
        for other in bookies.values()
        if isinstance(other, DrainingBookie) and other is not bookie and other.mode is Mode.WRITABLE
    )
    return next_step(bookie, replace(cluster_state, also_leaving=others) if isinstance(cluster_state, ClusterState) else cluster_state)


def _waiting_for(moving: int | None, drain: Drain) -> Drain:
    """Returns the first drain, which waits for the Job of another round before it begins one: one that is stopped comes before it."""
    if moving is None or not isinstance(drain.step, Move):
        return drain
    return replace(drain, step=Wait(Reason.WAITING_FOR_OTHERS, f"ledgers of bookie {moving} are moved first"))


def _after(first: int | None, drain: Drain) -> Drain:
    if isinstance(drain.step, Wait | MarkDraining | MakeReadOnly | Restart | CloseLedgers):
        return drain
    return replace(drain, step=Wait(Reason.WAITING_FOR_OTHERS, f"bookie {first} is drained first"))


def _moves(bookie: DrainingBookie | Unknown) -> bool:
    return isinstance(bookie, DrainingBookie) and any(begun.job is JobState.RUNNING for begun in bookie.rounds)


def _order(drain: Drain) -> tuple[bool, bool, bool, bool, int]:
    """Sort key: continue what has started, first of all a running Job, then take the highest number. A bookie that is away, whose open
    ledgers nobody closes, whose Job failed, or whose claims go, blocks no other.
    """
    bookie = drain.bookie
    if isinstance(bookie, Unknown):
        return (True, True, True, True, -drain.number)
    moves = _moves(bookie)
    waits = isinstance(drain.step, CloseLedgers) or (isinstance(drain.step, Wait) and drain.step.reason in _HELD)
    held = waits and not moves
    return (held or bookie.is_left_to_kubernetes, not bookie.scaled_to_zero, not moves, not bookie.rounds, -drain.number)


def mode_of(bookie_id: str, metadata: LedgersMetadata) -> Mode:
    """Returns how a bookie is registered. While its mode changes, a bookie may be registered twice. It may then still receive writes."""
    if bookie_id in metadata.writable:
        return Mode.WRITABLE
    return Mode.READ_ONLY if bookie_id in metadata.read_only else Mode.GONE


def why_too_few_racks(rule: PlacementRule, staying: frozenset[str]) -> str | None:
    """Returns why the bookies that stay are in too few racks, or None. Those with an unknown rack don't count. If all bookies together are
    in too few racks, a drain makes that no worse.
    """
    left, wanted = {rule.racks[bookie_id] for bookie_id in staying if bookie_id in rule.racks}, min(rule.minimum, rule.possible)
    if len(left) >= wanted or rule.minimum == 1:
        return None
    return (
        f"the bookies that stay are in {counted(len(left), 'rack')} ({', '.join(sorted(left)) or 'none is known'}), and each entry needs "
        f"copies in {rule.minimum}: start a bookie in another rack, or lower spec.placement.minRacksPerWriteQuorum. A node without the "
        "rack's label does not count beside others with it"
    )


def rounds_of(named: BookKeeperNames, objects: Objects, number: int) -> tuple[Round, ...]:
    """Returns the rounds of a bookie's drain, the first one first."""
    return tuple(_round(objects, begun, named.drain_round(number, begun)) for begun in _numbers(named, objects, number))


def _numbers(named: BookKeeperNames, objects: Objects, number: int) -> list[int]:
    """Returns the numbers of the rounds, ascending. A Job counts that a cancelled drain left without its record: it moves no later one."""
    prefix = named.drain_round(number, 0).removesuffix("0")
    made = (item["metadata"]["name"] for kind in ("ConfigMap", "Job") for item in objects.of_kind(kind))
    found = {name.removeprefix(prefix) for name in made if name.startswith(prefix)}
    return sorted(int(text) for text in found if text.isdigit())


def unread_of(named: BookKeeperNames, objects: Objects, number: int) -> tuple[Share, ...] | Unknown:
    """Returns what the rounds of a bookie's drain left unread, by their records. Unknown if one was spoilt."""
    records = (objects.data("ConfigMap", named.drain_round(number, begun)) for begun in _numbers(named, objects, number))
    try:
        return unread_shares((data.get(RECORD_KEY, ""), frozenset(map(int, data.get(WRITTEN_KEY, "").split()))) for data in records)
    except ValueError as error:
        return Unknown(f"a record of the drain of bookie {number}: {error}")


def _round(objects: Objects, number: int, job: str) -> Round:
    state, message = job_state_of(objects, job), _termination_message(objects, job)
    kept = is_kept(objects.get("ConfigMap", job) or {})
    if state is JobState.FAILED:
        return Round(number, state, f"{message or 'its pods left no message'}; delete the Job {job} to try again", kept)
    return Round(number, state, message, kept, why_held_up(objects, job))


def job_state_of(objects: Objects, name: str) -> JobState:
    job = objects.get("Job", name)
    if job is None:
        return JobState.ABSENT
    end = job_ended(job)
    return JobState.RUNNING if end is None else JobState.FAILED if end.failed else JobState.DONE


def why_held_up(objects: Objects, name: str) -> str:
    """Returns why a Job has no pod, or one that does not start or was evicted. An empty string if the Job gets on, or has ended."""
    if job_state_of(objects, name) is not JobState.RUNNING:
        return ""
    pods = pods_of_job(objects, name)
    newest = pods[-1] if pods else None
    starts = newest is not None and (newest.get("status", {}).get("phase") != "Pending" or pod_trouble(newest) == STARTING)
    waiting = "" if starts else f"the pod of the Job {name} is waiting: {pod_trouble(newest)}"
    return "; ".join(filter(None, (waiting, _evictions(objects, name))))


def _evictions(objects: Objects, name: str) -> str:
    """Returns how often the pod of a Job was evicted, since when, and what helps. Kubernetes counts no eviction as a failure, and only a
    kubelet leaves the evicted pod behind. Of others only the time of the pod that replaced it tells.
    """
    pods = pods_of_job(objects, name)
    evicted = [status for pod in pods if (status := pod.get("status", {})).get("phase") == "Failed" and _disruption(status)]
    if evicted:
        last, since = evicted[-1], _disruption(evicted[0]).get("lastTransitionTime")
        why = shortened(str(last.get("message") or _disruption(last).get("reason")))
        return f"the pod of the Job {name} was evicted {counted(len(evicted), 'time')} since {since} ({why}): {_MORE_ROOM}"
    status = (objects.get("Job", name) or {}).get("status", {})
    begun, newest = status.get("startTime"), pods[-1]["metadata"]["creationTimestamp"] if pods else None
    if not begun or newest is None or status.get("failed") or _seconds_between(begun, newest) < LATE_SECONDS:
        return ""
    return (
        f"the Job {name} began at {begun}, and its pod at {newest}: earlier ones were evicted or preempted, or could not be made (see the "
        f"events of the Job): {_MORE_ROOM}"
    )


def _disruption(pod_status: Json) -> Json:
    """Returns the condition of a pod that Kubernetes disrupted, or is about to; otherwise an empty one."""
    conditions: list[Json] = pod_status.get("conditions") or []
    return next((entry for entry in conditions if entry["type"] == "DisruptionTarget" and entry["status"] == "True"), {})


def _seconds_between(first: str, second: str) -> float:
    return (datetime.datetime.fromisoformat(second) - datetime.datetime.fromisoformat(first)).total_seconds()


def _termination_message(objects: Objects, name: str) -> str:
    """Returns the termination message of the last failed container of a Job's pods, or an empty string."""
    message = [
        ended.message.strip()
        for pod in pods_of_job(objects, name)
        for kind in ("initContainerStatuses", "containerStatuses")
        for ended in ended_in(pod, kind)
        if ended.is_current and ended.message and ended.exit_code
    ]
    return message[-1][-400:] if message else ""
