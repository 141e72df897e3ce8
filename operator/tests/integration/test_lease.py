"""The Lease on a real API server: one leads at a time, the next one takes over, and who can't renew stops in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from kubernetes.client import ApiException
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import NotFoundError

from herdkeeper.clients.kubernetes_writer import MERGE_PATCH
from herdkeeper.process import lease as lease_module
from herdkeeper.process.lease import Lease
from herdkeeper_e2e.control_plane import ControlPlane

PATIENCE_SECONDS = 120.0


class Clock:
    """The candidates' time. It stands still until a test moves it on: no Lease ends only because the machine is busy."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def clock_gettime(self, clock: int) -> float:
        """Also while a machine sleeps, where CLOCK_MONOTONIC stands still."""
        return self.seconds if clock == time.CLOCK_BOOTTIME else 1000.0

    def pass_renew_deadline(self) -> None:
        """A leader that has not renewed since does not count as one any more, and nobody may take over yet."""
        self.seconds += (lease_module.RENEW_DEADLINE_SECONDS + lease_module.DURATION_SECONDS) / 2

    def pass_duration(self) -> None:
        """Whoever has seen no renewal since may take over."""
        self.seconds += lease_module.DURATION_SECONDS + 1.0


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Candidates try often, and wait for an answer as long as it takes."""
    clock = Clock()
    monkeypatch.setattr(lease_module, "time", clock)
    monkeypatch.setattr(lease_module, "DURATION_SECONDS", 1.5 * PATIENCE_SECONDS)
    monkeypatch.setattr(lease_module, "RENEW_DEADLINE_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(lease_module, "_patience", lambda: (PATIENCE_SECONDS, PATIENCE_SECONDS))
    monkeypatch.setattr(lease_module, "RETRY_SECONDS", 0.1)
    return clock


class Cable:
    """A dynamic client that can be cut off from the API server: `cut` has requests fail, `dead` has them hang. `before` is called with the
    verb of each other one."""

    def __init__(self, client: DynamicClient) -> None:
        self._client = client
        self.cut = threading.Event()
        self.dead = threading.Event()
        self.before: Callable[[str], None] = lambda _: None
        self._noticed = threading.Event()

    def break_by(self, fault: threading.Event) -> None:
        """Set `cut` or `dead`, and wait until a request meets that: those before it have ended."""
        fault.set()
        assert self._noticed.wait(PATIENCE_SECONDS)

    def mend(self) -> None:
        self.cut.clear()
        self.dead.clear()

    def request(self, verb: str, path: str, **arguments: Any) -> Any:
        if self.cut.is_set() or self.dead.is_set():
            self._noticed.set()
        if self.cut.is_set():
            raise ApiException(status=503, reason="cut off")
        while self.dead.is_set():
            time.sleep(0.02)  # between polls of the condition
        self.before(verb)
        return self._client.request(verb, path, **arguments)


@dataclass
class Candidate:
    """A process that wants to lead. `held_at_loss` is what `held` answered when the loss was told."""

    name: str
    cable: Cable
    namespace: str
    losses: list[bool] = field(default_factory=list)
    led: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.lease = Lease(self.cable, self.namespace, self.name, self._lost)

    def compete(self) -> None:
        """Acquire in a thread."""

        def acquire() -> None:
            if self.lease.acquire():
                self.led.set()

        threading.Thread(target=acquire, daemon=True).start()

    def compete_and_look(self) -> None:
        """The same, and wait until it has seen the Lease."""
        self.compete()
        self.look()

    def look(self) -> None:
        """Wait for the end of a look at the Lease that begins after this call: the first request may be of one that began before."""
        requests = threading.Semaphore(0)
        self.cable.before = lambda _: requests.release()
        for _ in range(3):
            assert requests.acquire(timeout=PATIENCE_SECONDS)

    def _lost(self) -> None:
        self.losses.append(self.lease.held())


@dataclass
class Election:
    """Candidates for the Lease of one namespace."""

    dynamic: DynamicClient
    namespace: str
    candidates: list[Candidate] = field(default_factory=list)

    def candidate(self, name: str) -> Candidate:
        found = Candidate(name, Cable(self.dynamic), self.namespace)
        self.candidates.append(found)
        return found

    def delete(self) -> None:
        """Somebody's `kubectl delete`."""
        self._leases().delete(name=lease_module.NAME, namespace=self.namespace)

    def write(self, spec: dict[str, Any]) -> None:
        """Somebody's `kubectl patch`."""
        self._leases().patch(name=lease_module.NAME, namespace=self.namespace, body={"spec": spec}, content_type=MERGE_PATCH)

    def _leases(self) -> Any:
        return self.dynamic.resources.get(api_version="coordination.k8s.io/v1", kind="Lease")

    def spec(self) -> dict[str, Any]:
        try:
            return dict(self._leases().get(name=lease_module.NAME, namespace=self.namespace).to_dict()["spec"])
        except NotFoundError:
            return {}

    def wait_for_renewals(self) -> None:
        """Wait until two were written: the leader knows of the first one."""
        for _ in range(2):
            last = self.spec()["renewTime"]
            wait_until(lambda last=last: self.spec()["renewTime"] != last)  # type: ignore[misc]


@pytest.fixture
def election(control_plane: ControlPlane, namespace: str) -> Iterator[Election]:
    election = Election(control_plane.dynamic_client(), namespace)
    yield election
    for candidate in election.candidates:
        candidate.cable.mend()
        candidate.lease.release()


def wait_until(what: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)  # between polls of the condition


def test_the_first_candidate_leads_and_says_so_in_the_lease(election: Election) -> None:
    first = election.candidate("first")
    assert not first.lease.held()
    assert first.lease.acquire()
    assert first.lease.held()
    spec = election.spec()
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("first", 180, 1)


def test_a_second_candidate_does_not_lead_while_the_first_one_renews(election: Election, clock: Clock) -> None:
    first, second = election.candidate("first"), election.candidate("second")
    first.lease.acquire()
    second.compete()
    for _ in range(20):  # longer than a Lease lasts that nobody renews
        election.wait_for_renewals()
        clock.seconds += lease_module.DURATION_SECONDS / 10
        assert not second.led.is_set()
    second.look()
    assert (first.lease.held(), second.lease.held(), first.losses) == (True, False, [])
    assert election.spec()["leaseTransitions"] == 1


def test_a_released_lease_is_taken_over_without_waiting_for_its_end(election: Election) -> None:
    first, second = election.candidate("first"), election.candidate("second")
    first.lease.acquire()
    second.compete()
    first.lease.release()
    assert second.led.wait(PATIENCE_SECONDS), "it waits for the end instead"
    assert (first.lease.held(), second.lease.held(), first.losses) == (False, True, [])
    spec = election.spec()
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("second", 2)


def test_a_leader_that_is_cut_off_is_told_of_its_loss_once_and_before_another_leads(election: Election, clock: Clock) -> None:
    first, second = election.candidate("first"), election.candidate("second")
    first.lease.acquire()
    second.compete_and_look()
    first.cable.break_by(first.cable.cut)
    loses_before_another_leads(first, second, clock)
    first.cable.mend()
    second.look()
    assert (first.losses, first.lease.held()) == ([False], False)
    assert election.spec()["holderIdentity"] == "second"


def test_a_leader_whose_requests_hang_is_told_of_its_loss_before_another_leads(election: Election, clock: Clock) -> None:
    first, second = election.candidate("first"), election.candidate("second")
    first.lease.acquire()
    second.compete_and_look()
    first.cable.break_by(first.cable.dead)
    loses_before_another_leads(first, second, clock)


def loses_before_another_leads(leader: Candidate, other: Candidate, clock: Clock) -> None:
    """A leader that can't renew is told of its loss, and the other one, which has seen its Lease, leads after that."""
    clock.pass_renew_deadline()
    wait_until(lambda: bool(leader.losses))
    other.look()
    assert (leader.losses, leader.lease.held(), other.led.is_set()) == ([False], False, False)
    clock.pass_duration()
    assert other.led.wait(PATIENCE_SECONDS)


def test_a_candidate_that_sees_a_renewal_late_waits_for_the_whole_lease_after_it(election: Election, clock: Clock) -> None:
    first, second = election.candidate("first"), election.candidate("second")
    first.lease.acquire()
    asked = threading.Event()

    def late(verb: str) -> None:
        second.cable.before = lambda _: None
        clock.seconds += 0.9 * lease_module.RENEW_DEADLINE_SECONDS
        election.wait_for_renewals()
        first.cable.break_by(first.cable.cut)
        clock.seconds += lease_module.DURATION_SECONDS / 2  # before the answer: more than the Lease's duration since the candidate asked
        asked.set()

    second.cable.before = late
    second.compete()
    assert asked.wait(PATIENCE_SECONDS)
    second.look()
    assert (first.lease.held(), second.led.is_set()) == (True, False)
    loses_before_another_leads(first, second, clock)


def test_a_renewal_under_way_does_not_undo_a_release(election: Election) -> None:
    first = election.candidate("first")
    first.lease.acquire()
    renewing, release_has_read = threading.Event(), threading.Event()
    last = election.spec()["renewTime"]

    def before(verb: str) -> None:
        """The renewal's write comes between the release's read and its write, unless the release waits for it."""
        if verb == "put" and threading.current_thread().name == "lease":
            renewing.set()
            release_has_read.wait(1)
        elif verb == "put":
            release_has_read.set()
            with suppress(AssertionError):
                wait_until(lambda: election.spec()["renewTime"] != last, 1)

    first.cable.before = before
    assert renewing.wait(PATIENCE_SECONDS)
    first.lease.release()
    assert (election.spec()["holderIdentity"], first.losses) == ("", [])


def test_a_lease_that_somebody_deletes_makes_no_second_leader(election: Election, clock: Clock) -> None:
    first, second = election.candidate("first"), election.candidate("second")
    first.lease.acquire()
    second.compete_and_look()
    first.cable.break_by(first.cable.cut)
    election.delete()
    loses_before_another_leads(first, second, clock)


def test_a_leader_makes_a_lease_again_that_somebody_deletes(election: Election) -> None:
    first, second = election.candidate("first"), election.candidate("second")
    first.lease.acquire()
    second.compete_and_look()
    election.delete()
    wait_until(lambda: election.spec().get("holderIdentity") == "first")
    assert (first.lease.held(), first.losses, second.led.is_set()) == (True, [], False)


def test_a_leader_from_which_another_takes_the_lease_stops_before_its_own_time_is_over(
    election: Election,
) -> None:
    first = election.candidate("first")
    first.lease.acquire()
    election.write({"holderIdentity": "another"})
    wait_until(lambda: first.losses == [False])


def test_a_leader_that_can_t_renew_ceases_to_count_as_one_before_it_might_be_replaced(election: Election, clock: Clock) -> None:
    first = election.candidate("first")
    first.lease.acquire()
    first.cable.break_by(first.cable.cut)
    clock.pass_renew_deadline()
    assert not first.lease.held()
    wait_until(lambda: bool(first.losses))


def test_a_leader_whose_time_was_over_does_not_renew_any_more_though_nobody_else_led_since(election: Election, clock: Clock) -> None:
    """Its process was paused, and its renewal goes on before anything else has looked at the time."""
    first = election.candidate("first")
    first.lease.acquire()
    first.cable.break_by(first.cable.cut)
    clock.pass_renew_deadline()
    wait_until(lambda: bool(first.losses))
    first.cable.mend()
    wait_until(lambda: not any(thread.name == "lease" for thread in threading.enumerate()), 10)
    assert not first.lease.held()


def test_a_short_silence_of_the_api_server_costs_no_leadership(election: Election, clock: Clock) -> None:
    first = election.candidate("first")
    first.lease.acquire()
    first.cable.break_by(first.cable.cut)
    clock.seconds += 0.75 * lease_module.RENEW_DEADLINE_SECONDS
    first.cable.mend()
    election.wait_for_renewals()
    clock.seconds += 0.75 * lease_module.RENEW_DEADLINE_SECONDS
    assert (first.lease.held(), first.losses) == (True, [])


def test_a_process_that_starts_again_under_its_old_name_leads_without_waiting_for_the_end_of_its_lease(election: Election) -> None:
    before = election.candidate("pod-0")
    before.lease.acquire()
    before.lease.give_up()  # it ended without a release
    again = election.candidate("pod-0")
    again.compete()
    assert again.led.wait(PATIENCE_SECONDS), "it waits for the end instead"
    assert election.spec()["leaseTransitions"] == 1


def test_a_candidate_that_gives_up_never_leads(election: Election) -> None:
    first, second = election.candidate("first"), election.candidate("second")
    first.lease.acquire()
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(second.lease.acquire()), daemon=True)
    thread.start()
    second.lease.give_up()
    thread.join(PATIENCE_SECONDS)
    first.lease.release()
    assert (answers, second.lease.held(), election.spec()["holderIdentity"]) == ([False], False, "")


def test_a_release_leaves_the_lease_of_another_alone(election: Election) -> None:
    first, second = election.candidate("first"), election.candidate("second")
    first.lease.acquire()
    first.lease.release()
    second.lease.acquire()
    first.lease.release()
    assert (election.spec()["holderIdentity"], second.lease.held()) == ("second", True)


def test_of_candidates_that_come_at_the_same_moment_one_leads(election: Election) -> None:
    candidates = [election.candidate(f"candidate-{number}") for number in range(5)]
    for candidate in candidates:
        candidate.compete()
    wait_until(lambda: any(candidate.led.is_set() for candidate in candidates))
    for candidate in candidates:
        candidate.look()
        assert sum(each.lease.held() for each in candidates) == 1
