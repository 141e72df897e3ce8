"""Draining one bookie: a row for every step, a row for every blocker, and no situation in which data that is needed goes."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from herdkeeper.bookkeeper.drain.procedure import (
    MOST_LEDGERS,
    Claim,
    CloseLedgers,
    ClusterState,
    DeleteClaims,
    DrainingBookie,
    JobState,
    MakeReadOnly,
    MarkDraining,
    Mode,
    Move,
    Record,
    RemoveTraces,
    Restart,
    RetireIdentity,
    Round,
    Stop,
    later_steps,
    next_step,
)
from herdkeeper.bookkeeper.drain.state import drains_of, rounds_of, why_held_up
from herdkeeper.codecs.bookkeeper.share import Place, Share
from herdkeeper.planning.actions import Wait
from herdkeeper.shared.names import BookKeeperNames, ObjectKey
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

PLACES = (Place(0, 1),)
CLOSED = Share(7, PLACES, closed=True, written=False, payload_bytes=1000)
MANY_SEGMENTS = replace(CLOSED, places=tuple(Place(first, 1) for first in range(10_000)))
CAME = replace(CLOSED, ledger_id=9)
TURNED = Share(8, PLACES, closed=False, written=False)
WRITTEN = Share(42, PLACES, closed=False, written=True, tablespace="flights")
LEFT = Share(41, PLACES, closed=True, written=False)
CLAIMS = (Claim("bk-bookie-1-journal", "uid-1"), Claim("bk-bookie-1-ledgers", "uid-2"))
GOING = tuple(replace(claim, going=True) for claim in CLAIMS)
MOVED = (Round(1, JobState.DONE),)

HEALTHY = ClusterState(writable=4, largest_ensemble=3, autorecovery=None)
SERVING = DrainingBookie(
    number=1,
    bookie_id="bk-1",
    mode=Mode.WRITABLE,
    marked=False,
    answers=True,
    pod_present=True,
    scaled_to_zero=False,
    shares=(CLOSED, WRITTEN),
    rounds=(),
    cookie=True,
    retirement=JobState.ABSENT,
    claims=CLAIMS,
)
MARKED = replace(SERVING, marked=True)
READ_ONLY = replace(MARKED, mode=Mode.READ_ONLY)
EMPTY = replace(READ_ONLY, shares=(), rounds=MOVED)
STOPPED = replace(EMPTY, mode=Mode.GONE, answers=False, pod_present=False, scaled_to_zero=True)
AWAY = replace(READ_ONLY, mode=Mode.GONE, answers=False, pod_present=False)


@pytest.mark.parametrize(
    ("situation", "bookie", "expected"),
    [
        ("that we make it read-only is written down first", SERVING, MarkDraining()),
        ("it stops taking new entries", MARKED, MakeReadOnly()),
        ("what it holds is written down", READ_ONLY, Record(1, (CLOSED, WRITTEN))),
        ("and moves while it can still be read", replace(READ_ONLY, rounds=(Round(1, JobState.ABSENT),)), Move(1)),
        (
            "what came since the record is for the next round",
            replace(READ_ONLY, shares=(CAME,), rounds=(Round(1, JobState.ABSENT), Round(2, JobState.DONE))),
            Move(1),
        ),
        ("which follows", replace(READ_ONLY, shares=(CAME,), rounds=MOVED), Record(2, (CAME,))),
        (
            "what a drain had moved that was taken back is read back",
            replace(READ_ONLY, shares=(), rounds=(Round(1, JobState.ABSENT, kept=True),)),
            Move(1),
        ),
        ("an open ledger moves when its writer has turned away", replace(READ_ONLY, shares=(TURNED,), rounds=MOVED), Record(2, (TURNED,))),
        (
            "the writer of an idle database is asked to close its ledger",
            replace(READ_ONLY, shares=(replace(WRITTEN, writer="db-0"),), rounds=MOVED, own_writers=frozenset({"db-0"})),
            CloseLedgers((replace(WRITTEN, writer="db-0"),)),
        ),
        ("one that nothing names stops", EMPTY, Stop()),
        ("one that never held anything stops as well", replace(EMPTY, rounds=()), Stop()),
        ("one that never registered need not come back", replace(AWAY, shares=(), cookie=False), Stop()),
        ("one that was stopped too early comes back", replace(STOPPED, shares=(WRITTEN,)), Restart()),
        ("as does one whose proof is gone", replace(STOPPED, rounds=(Round(1, JobState.ABSENT),)), Restart()),
        ("a stopped bookie gives up its identity", STOPPED, RetireIdentity()),
        *(
            (
                "a proof that is gone once the identity goes, or has gone, is made again without the bookie",
                replace(STOPPED, rounds=(Round(1, JobState.ABSENT),), cookie=cookie, retirement=retirement),
                Move(1),
            )
            for cookie, retirement in ((True, JobState.RUNNING), (False, JobState.DONE), (False, JobState.ABSENT))
        ),
        ("only then its volumes go, by uid", replace(STOPPED, cookie=False, retirement=JobState.DONE), DeleteClaims(CLAIMS)),
        ("and then what is left of it", replace(STOPPED, cookie=False, claims=()), RemoveTraces()),
    ],
)
def test_a_drain_goes_step_by_step(situation, bookie, expected):
    assert next_step(bookie, HEALTHY) == expected, situation


def test_a_bookie_that_a_full_disk_or_a_person_made_read_only_stays_so_if_its_drain_is_taken_back():
    """The mark says that the operator made it read-only. It does so if the bookie becomes writable meanwhile."""
    full = replace(READ_ONLY, marked=False)
    assert next_step(full, HEALTHY) == Record(1, (CLOSED, WRITTEN))
    assert next_step(replace(full, mode=Mode.WRITABLE), HEALTHY) == MarkDraining()


def test_what_autorecovery_moved_since_a_round_recorded_it_is_read_before_the_bookie_goes():
    assert next_step(replace(EMPTY, unread=(LEFT,)), HEALTHY) == Record(2, (LEFT,))
    part = replace(LEFT, ledger_id=TURNED.ledger_id, places=(Place(0, 0),))
    both = replace(TURNED, places=(Place(0, 0), Place(0, 1)))
    assert next_step(replace(READ_ONLY, shares=(TURNED,), rounds=MOVED, unread=(part,)), HEALTHY) == Record(2, (both,))


def test_a_bookie_that_is_away_and_whose_cookie_somebody_deleted_is_not_stopped_before_all_of_it_is_read():
    gone = replace(AWAY, shares=(), cookie=False, rounds=MOVED)
    assert next_step(gone, HEALTHY) == Stop()
    waits = next_step(replace(gone, unread=(LEFT,)), HEALTHY)
    assert isinstance(waits, Wait)
    assert waits.reason is Reason.BOOKIE_DOWN


@pytest.mark.parametrize(
    ("bookie", "rest", "reason", "says"),
    [
        (Unknown("ZooKeeper did not answer"), HEALTHY, Reason.UNREADABLE, "ZooKeeper"),
        (STOPPED, Unknown("ledgers were not scanned"), Reason.UNREADABLE, "scanned"),
        (SERVING, replace(HEALTHY, writable=3), Reason.TOO_FEW_BOOKIES, "if no bookie is starting, raise spec.bookies until 4 stay"),
        (SERVING, replace(HEALTHY, lacking="3 ledgers name bk-9, which is not registered"), Reason.UNDER_REPLICATED, "bk-9"),
        (SERVING, replace(HEALTHY, autorecovery="no auditor is elected"), Reason.AUTORECOVERY_OFF, "no auditor"),
        (replace(MARKED, answers=False), HEALTHY, Reason.BOOKIE_DOWN, "not Ready"),
        (replace(READ_ONLY, rounds=(Round(1, JobState.RUNNING),)), HEALTHY, Reason.MOVING_LEDGERS, "2 ledgers"),
        (replace(READ_ONLY, rounds=(Round(1, JobState.FAILED, "ledger 7 is damaged"),)), HEALTHY, Reason.DRAIN_FAILED, "damaged"),
        (
            replace(READ_ONLY, rounds=(Round(1, JobState.RUNNING, "entry 8 is missing"),)),
            HEALTHY,
            Reason.MOVING_LEDGERS,
            "entry 8 is missing",
        ),
        (READ_ONLY, replace(HEALTHY, also_leaving=("bk-2",)), Reason.WAITING_FOR_OTHERS, "bk-2"),
        (
            replace(READ_ONLY, rounds=(Round(1, JobState.ABSENT),)),
            replace(HEALTHY, also_leaving=("bk-2",)),
            Reason.WAITING_FOR_OTHERS,
            "bk-2",
        ),
        (replace(READ_ONLY, shares=(WRITTEN,), rounds=MOVED), HEALTHY, Reason.OPEN_LEDGERS, "42 (tablespace flights)"),
        (replace(READ_ONLY, shares=(replace(WRITTEN, writer="theirs"),), rounds=MOVED), HEALTHY, Reason.OPEN_LEDGERS, "42"),
        (replace(READ_ONLY, shares=(CLOSED,) * (MOST_LEDGERS + 1)), HEALTHY, Reason.DRAIN_FAILED, f"{MOST_LEDGERS}: cancel the drain"),
        (replace(READ_ONLY, shares=(MANY_SEGMENTS,) * 20), HEALTHY, Reason.DRAIN_FAILED, "many segments"),
        (replace(READ_ONLY, shares=(MANY_SEGMENTS,) * 20), HEALTHY, Reason.DRAIN_FAILED, "that fit: cancel the drain"),
        (AWAY, HEALTHY, Reason.BOOKIE_DOWN, "2 ledgers"),
        (replace(AWAY, shares=()), HEALTHY, Reason.BOOKIE_DOWN, "once it is back"),
        (replace(STOPPED, pod_present=True), HEALTHY, Reason.POD_STOPPING, "stopping"),
        (replace(STOPPED, mode=Mode.READ_ONLY), HEALTHY, Reason.POD_STOPPING, "stopping"),
        (STOPPED, replace(HEALTHY, lacking="3 ledgers name bk-9, which is not registered"), Reason.UNDER_REPLICATED, "bk-9"),
        (replace(STOPPED, retirement=JobState.RUNNING), HEALTHY, Reason.RETIRING, "bk-1"),
        (replace(STOPPED, retirement=JobState.RUNNING, shares=(CLOSED,)), HEALTHY, Reason.DRAIN_FAILED, "its volumes are kept"),
        (replace(STOPPED, retirement=JobState.FAILED), HEALTHY, Reason.DRAIN_FAILED, "delete the failed Job"),
        (replace(STOPPED, cookie=False, shares=(CLOSED,)), HEALTHY, Reason.DRAIN_FAILED, "volumes are kept"),
        (replace(STOPPED, cookie=False, claims=GOING), HEALTHY, Reason.DRAINED, "bk-bookie-1-journal, bk-bookie-1-ledgers. If they stay"),
    ],
)
def test_it_waits_and_says_why(bookie, rest, reason, says):
    step = next_step(bookie, rest)
    assert isinstance(step, Wait)
    assert step.reason is reason
    assert says in step.message


@pytest.mark.parametrize(
    ("situation", "bookie", "words"),
    [
        (
            "all of it",
            SERVING,
            (
                *(
                    "make bk-1 read-only",
                    "copy 1 closed ledger of bk-1 (about 1000 bytes)",
                    "copy 1 open ledger of it, and read all back, once the writers have moved on: 42 (tablespace flights)",
                ),
                *("stop bk-1", "remove the identity bk-1", "delete the volume claims bk-bookie-1-journal, bk-bookie-1-ledgers"),
            ),
        ),
        ("what is left of it", STOPPED, ("remove the identity bk-1", "delete the volume claims")),
    ],
)
def test_what_a_drain_would_do_is_told_in_order(situation, bookie, words):
    steps = later_steps(bookie)
    assert len(steps) == len(words), situation
    assert all(word in step for word, step in zip(words, steps, strict=True)), steps


def situations():
    """Every combination of what can be seen of a bookie and of the rest."""
    flags = (False, True)
    shares = ((), (CLOSED,), (WRITTEN,))
    rounds = ((), MOVED, *((Round(1, state),) for state in (JobState.ABSENT, JobState.RUNNING, JobState.FAILED)))
    rests = (
        HEALTHY,
        replace(HEALTHY, lacking="x"),
        replace(HEALTHY, autorecovery="off"),
        Unknown("unread"),
    )
    for mode, held, begun, cookie, ours, pod, retirement, rest in product(Mode, shares, rounds, flags, flags, flags, JobState, rests):
        yield DrainingBookie(1, "bk-1", mode, True, pod, pod, ours, held, begun, cookie, retirement, CLAIMS), rest


def test_no_situation_takes_what_a_ledger_may_still_need():
    for bookie, rest in situations():
        step = next_step(bookie, rest)
        if isinstance(step, RetireIdentity | DeleteClaims | RemoveTraces):
            assert (bookie.mode, bookie.shares, bookie.scaled_to_zero, bookie.pod_present) == (Mode.GONE, (), True, False)
            assert all(begun.job is JobState.DONE for begun in bookie.rounds)
            assert rest == HEALTHY
        if isinstance(step, DeleteClaims):
            assert not bookie.cookie
        if isinstance(step, Stop):
            assert bookie.shares == ()
            assert bookie.mode is Mode.READ_ONLY or not bookie.cookie


def test_no_round_ever_touches_a_bookie_that_may_still_be_written_to():
    for bookie, rest in situations():
        step = next_step(bookie, rest)
        if isinstance(step, Record | Move):
            stopped = bookie.scaled_to_zero and not bookie.pod_present and bookie.mode is Mode.GONE
            assert bookie.mode is Mode.READ_ONLY or (stopped and isinstance(step, Move))


def test_a_claim_that_is_never_gone_holds_up_no_other_drain():
    """Such as one that a snapshot, or another program's finalizer, keeps."""
    gone = replace(STOPPED, number=2, bookie_id="bk-2", cookie=False, claims=GOING)
    next_one, waiting = drains_of({1: EMPTY, 2: gone}, HEALTHY)
    assert (next_one.number, next_one.step) == (1, Stop())
    assert isinstance(waiting.step, Wait)
    assert waiting.step.reason is Reason.DRAINED
    first, later = drains_of({1: EMPTY, 2: replace(gone, claims=(GOING[0], CLAIMS[1]))}, HEALTHY)
    assert (first.number, first.step) == (2, DeleteClaims((GOING[0], CLAIMS[1])))
    assert later.step == Wait(Reason.WAITING_FOR_OTHERS, "bookie 2 is drained first")


@pytest.mark.parametrize(
    ("situation", "held", "reason"),
    [
        ("nobody writes to its open ledger again", replace(READ_ONLY, shares=(WRITTEN,), rounds=MOVED), Reason.OPEN_LEDGERS),
        ("an entry has no second copy", replace(READ_ONLY, rounds=(Round(1, JobState.FAILED, "no copy"),)), Reason.DRAIN_FAILED),
        ("it is away", AWAY, Reason.BOOKIE_DOWN),
    ],
)
def test_a_drain_that_waits_for_a_person_or_a_foreign_writer_holds_up_no_other(situation, held, reason):
    next_one, waiting = drains_of({1: EMPTY, 2: replace(held, number=2, bookie_id="bk-2")}, HEALTHY)
    assert (next_one.number, next_one.step) == (1, Stop()), situation
    assert isinstance(waiting.step, Wait)
    assert waiting.step.reason is reason, situation


def test_a_writer_that_never_closes_its_idle_ledger_holds_up_no_other_drain():
    """Such as one whose machine is gone: the order to close it fails each time."""
    idle = replace(READ_ONLY, shares=(replace(WRITTEN, writer="db-0"),), rounds=MOVED, own_writers=frozenset({"db-0"}))
    writing = replace(idle, number=2, bookie_id="bk-2")
    first, second = drains_of({1: EMPTY, 2: writing}, HEALTHY)
    assert (first.number, first.step) == (1, Stop())
    assert isinstance(second.step, CloseLedgers)


def test_a_drain_that_may_go_on_again_waits_for_the_job_of_the_one_that_overtook_it():
    """Two Jobs at once would load the bookies twice as much as spec.autoRecovery says, and a quota may refuse the second one."""
    overtaking = replace(READ_ONLY, rounds=(Round(1, JobState.RUNNING),))
    freed = replace(READ_ONLY, number=2, bookie_id="bk-2", shares=(TURNED,), rounds=MOVED)
    first, second = drains_of({1: overtaking, 2: freed}, HEALTHY)
    assert (first.number, second.step) == (1, Wait(Reason.WAITING_FOR_OTHERS, "bookie 1 is drained first"))


@pytest.mark.parametrize(
    ("situation", "moving"),
    [
        ("another one's", replace(READ_ONLY, number=2, bookie_id="bk-2", rounds=(Round(1, JobState.RUNNING),))),
        ("that of another one, whose pod went meanwhile", replace(AWAY, number=2, bookie_id="bk-2", rounds=(Round(1, JobState.RUNNING),))),
    ],
)
def test_a_proof_that_is_made_again_waits_for_the_job_that_moves_ledgers(situation, moving):
    """Somebody deleted the Job of a bookie that is stopped, so it comes first; its new Job would copy beside the other one."""
    again = replace(STOPPED, rounds=(Round(1, JobState.ABSENT),), retirement=JobState.DONE)
    steps = {drain.number: drain.step for drain in drains_of({1: again, 2: moving}, HEALTHY)}
    assert steps[1] == Wait(Reason.WAITING_FOR_OTHERS, "ledgers of bookie 2 are moved first"), situation
    assert not any(isinstance(step, Move) for step in steps.values())


def test_a_round_whose_job_somebody_deleted_waits_for_the_job_of_a_later_one():
    rounds = (Round(1, JobState.ABSENT), Round(2, JobState.RUNNING))
    (drain,) = drains_of({1: replace(READ_ONLY, rounds=rounds)}, HEALTHY)
    assert isinstance(drain.step, Wait)


def test_a_drain_whose_bookie_goes_while_its_job_runs_lets_no_other_job_begin():
    gone = replace(AWAY, number=2, bookie_id="bk-2", rounds=(Round(1, JobState.RUNNING),))
    other = replace(READ_ONLY, rounds=(Round(1, JobState.ABSENT),))
    assert [drain.step for drain in drains_of({1: other, 2: gone}, HEALTHY) if isinstance(drain.step, Move)] == []


def test_a_bookie_that_was_stopped_too_early_comes_back_while_another_one_is_retired():
    first, second = drains_of({1: replace(STOPPED, shares=(WRITTEN,)), 2: replace(STOPPED, number=2, bookie_id="bk-2")}, HEALTHY)
    assert (first.number, first.step) == (2, RetireIdentity())
    assert (second.number, second.step) == (1, Restart())


def test_a_drain_waits_while_the_racks_that_remain_are_too_few_for_the_placement_rule():
    one_rack = replace(HEALTHY, too_few_racks="the bookies that stay are in 1 rack")
    for bookie in (SERVING, MARKED, READ_ONLY, EMPTY):
        step = next_step(bookie, one_rack)
        assert isinstance(step, Wait)
        assert step.reason is Reason.TOO_FEW_RACKS


@pytest.mark.parametrize(("controller", "why"), [("this", "no room"), ("earlier", "")])
def test_a_round_that_is_tried_again_tells_no_failure_of_the_deleted_job(controller: str, why: str) -> None:
    job = "bk-bookie-1-drain-1"
    owner = {"kind": "Job", "name": job, "uid": controller, "controller": True}
    labels = {"batch.kubernetes.io/job-name": job}
    failed = {"name": "read-back", "state": {"terminated": {"exitCode": 3, "message": "no room"}}}
    pod = {
        "metadata": {"name": "p", "creationTimestamp": "2026-11-21T14:30:00Z", "labels": labels, "ownerReferences": [owner]},
        "status": {"containerStatuses": [failed]},
    }
    found = {("ConfigMap", job): {"metadata": {"name": job}}, ("Job", job): {"metadata": {"name": job, "uid": "this"}}, ("Pod", "p"): pod}
    objects = Objects({of: {"kind": of[0], **item} for of, item in found.items()})
    (found_again,) = rounds_of(BookKeeperNames(ObjectKey("n", "bk")), objects, 1)
    assert replace(found_again, waits="") == Round(1, JobState.RUNNING, why)


@pytest.mark.parametrize(
    ("situation", "status", "told"),
    [
        ("a quota refuses it", None, "no pod, see its controller's events"),
        ("no node has room", {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}, "Unschedulable"),
        ("its image is missing", {"initContainerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]}, "ErrImagePull"),
        ("it moves ledgers", {"initContainerStatuses": [{"state": {"running": {}}}]}, ""),
    ],
)
def test_a_drain_tells_why_the_pod_of_its_round_does_not_start(situation, status, told):
    job = "bk-bookie-1-drain-1"
    found = {("ConfigMap", job): {"metadata": {"name": job}}, ("Job", job): {"metadata": {"name": job, "uid": "this"}}}
    if status is not None:
        labels = {"batch.kubernetes.io/job-name": job}
        metadata = {"name": "p", "creationTimestamp": "2026-11-21T14:30:00Z", "labels": labels}
        found["Pod", "p"] = {"metadata": metadata, "status": {"phase": "Pending", **status}}
    objects = Objects({of: {"kind": of[0], **item} for of, item in found.items()})
    begun = rounds_of(BookKeeperNames(ObjectKey("n", "bk")), objects, 1)
    moving = next_step(replace(READ_ONLY, rounds=begun), HEALTHY)
    retiring = next_step(replace(STOPPED, retirement=JobState.RUNNING, retirement_waits=why_held_up(objects, job)), HEALTHY)
    for step, reason in ((moving, Reason.MOVING_LEDGERS), (retiring, Reason.RETIRING)):
        assert isinstance(step, Wait)
        assert step.reason is reason
        assert (f"; the pod of the Job {job} is waiting: {told}" in step.message) is bool(told), situation


LOW = "The node was low on resource: memory. Container move was using 5Gi, request is 4Gi"


def pod_of(name: str, at: str, status: dict[str, object]) -> dict[tuple[str, str], dict[str, object]]:
    """A pod of the first round's Job, made at that time of a day."""
    labels = {"batch.kubernetes.io/job-name": "bk-bookie-1-drain-1"}
    metadata = {"name": name, "creationTimestamp": f"2026-11-21T{at}Z", "labels": labels}
    return {("Pod", name): {"kind": "Pod", "metadata": metadata, "status": status}}


def evicted(at: str, phase: str = "Failed", status: str = "True") -> dict[str, object]:
    entry = {"type": "DisruptionTarget", "status": status, "reason": "TerminationByKubelet", "lastTransitionTime": f"2026-11-21T{at}Z"}
    return {"phase": phase, "message": LOW, "conditions": [entry]}


@pytest.mark.parametrize(
    ("situation", "pods", "job", "told"),
    [
        ("a node lacks memory", {**pod_of("a", "14:00:00", evicted("14:20:00"))}, {}, f"evicted 1 time since 2026-11-21T14:20:00Z ({LOW})"),
        (
            "again and again",
            {
                **pod_of("a", "14:00:00", evicted("14:20:00")),
                **pod_of("b", "14:21:00", evicted("14:40:00")),
                **pod_of("c", "14:41:00", {"phase": "Running"}),
            },
            {},
            f"evicted 2 times since 2026-11-21T14:20:00Z ({LOW}): make room on the nodes",
        ),
        (
            "its node shut down, and left no message",
            pod_of("a", "14:00:00", {**evicted("14:20:00"), "message": ""}),
            {},
            "evicted 1 time since 2026-11-21T14:20:00Z (TerminationByKubelet): make room",
        ),
        ("a drained node takes the pod along", pod_of("b", "14:21:00", {"phase": "Running"}), {}, "its pod at 2026-11-21T14:21:00Z"),
        ("it was tried again since it failed", pod_of("b", "14:21:00", {"phase": "Running"}), {"failed": 1}, ""),
        ("it has just begun", pod_of("a", "14:00:01", {"phase": "Running"}), {}, ""),
        ("its pod is to be evicted", pod_of("a", "14:00:01", evicted("14:20:00", phase="Running")), {}, ""),
        ("it was to be evicted, and failed by itself", pod_of("a", "14:00:01", evicted("14:20:00", status="False")), {}, ""),
    ],
)
def test_a_drain_tells_that_the_pod_of_its_job_was_evicted_since_when_and_what_helps(situation, pods, job, told):
    """Kubernetes counts no eviction as a failure of the Job, so that it goes on for ever."""
    name = "bk-bookie-1-drain-1"
    running = {"kind": "Job", "metadata": {"name": name}, "status": {"startTime": "2026-11-21T14:00:00Z", **job}}
    objects = Objects({("ConfigMap", name): {"metadata": {"name": name}}, ("Job", name): running, **pods})
    step = next_step(replace(READ_ONLY, rounds=rounds_of(BookKeeperNames(ObjectKey("n", "bk")), objects, 1)), HEALTHY)
    assert isinstance(step, Wait)
    assert told in step.message, situation
    assert ("spec.pods.priorityClassName" in step.message) is bool(told), situation


def test_a_job_that_a_cancelled_drain_left_behind_does_not_stand_for_the_record_of_the_next_one() -> None:
    """The operator died after it had deleted the record, and the drain was asked for again."""
    job = "bk-bookie-1-drain-1"
    done = {"kind": "Job", "metadata": {"name": job}, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    rounds = rounds_of(BookKeeperNames(ObjectKey("n", "bk")), Objects({("Job", job): done}), 1)
    assert next_step(replace(READ_ONLY, rounds=rounds), HEALTHY) == Record(2, (CLOSED, WRITTEN))
