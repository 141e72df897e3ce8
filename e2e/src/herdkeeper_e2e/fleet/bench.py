"""One fleet, measured figure by figure."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from herdkeeper_e2e.control_plane import wait_until_ready
from herdkeeper_e2e.fleet.figures import Change, back_after, rates, shown, spread, waits, windows
from herdkeeper_e2e.fleet.fleet import Fleet, made
from herdkeeper_e2e.fleet.processes import cpu_seconds, mebibytes

RESOURCES = 4
"""Of a stack."""
LOOKED_AT = "herdkeeper_resource_ready"
"""The operator's metric that has a series for each resource that it has looked at since it started."""
COLD_SECONDS = 900.0
SETTLED_SECONDS, MOST_UNSETTLED_SECONDS = 20.0, 300.0
QUIET_SECONDS = 120.0
CHANGES = 100
"""At one a second."""
LAST_WRITE_SECONDS = 60.0
"""So long after the last change its write is waited for."""
KILLS, KILL_SECONDS = 5, 120.0
ROLL_SECONDS, NOISE_SECONDS = 15.0, 1 / 50
AWAY_SECONDS, AFTER_SECONDS = 60.0, 90.0
BACK_SECONDS = 180.0
"""So long after a disturbance requests are looked at: after a start it takes three rounds of the resync until these are spread."""
MOST_AFFECTED = 50
"""Stacks that roll, or whose ensemble is silent: so many, or a fifth of a smaller fleet."""
Disturb = Callable[[Callable[[], None]], float]
"""Disturbs the fleet for as long as what it is given takes; when it was over, in seconds since 1970."""


@dataclass
class Bench:
    """The figures of one fleet, by their rows."""

    fleet: Fleet
    rows: dict[str, str] = field(default_factory=dict)
    calm: int | None = None
    """The most requests of a window while nothing changes."""

    @property
    def affected(self) -> int:
        """How many stacks something happens to at the same time."""
        return min(MOST_AFFECTED, max(1, len(self.fleet.namespaces) // 5))

    def cold_start(self, *, told: bool) -> None:
        """The operator starts on stacks that are Ready."""
        began = self.fleet.operator.start()
        expected = RESOURCES * len(self.fleet.namespaces)
        while (seen := len(self.fleet.operator.metric(LOOKED_AT))) < expected and time.time() - began < COLD_SECONDS:
            time.sleep(1.0)  # between looks, which cost a large operator a tenth of a second each
        if told:
            self._note("3 start until each resource was looked at", shown(time.time() - began if seen >= expected else math.inf))
            self._note("3 operator's CPU until then", f"{cpu_seconds(self.fleet.operator.process_id):.1f} s")
        self.settle()

    def settle(self) -> None:
        """Until the operator writes nothing any more."""
        begun = time.time()
        while time.time() < begun + MOST_UNSETTLED_SECONDS:
            self.fleet.audit.read()
            if time.time() - max(begun, *self.fleet.audit.last_write.values()) > SETTLED_SECONDS:
                return
            time.sleep(1.0)  # between looks

    def quiet(self) -> None:
        """Nothing changes."""
        operator, others = self.fleet.operator, self.fleet.processes
        processes = {"operator": operator.process_id, **others, "this program": os.getpid()}
        before = {name: cpu_seconds(process) for name, process in processes.items()}
        begun, resident = time.time(), list[float]()
        while time.time() < begun + QUIET_SECONDS:
            resident.append(mebibytes(operator.process_id, "VmRSS"))
            time.sleep(1.0)  # between samples
        end = time.time()
        share = {name: (cpu_seconds(process) - before[name]) / (end - begun) * 100 for name, process in processes.items()}
        requests = self.fleet.audit.since(begun, end)
        self.calm = max(windows(requests, begun, end))
        leases = [request for request in requests if request.resource == "leases"]
        rest = [request for request in requests if request.resource != "leases"]
        self._note("1 requests/s while nothing changes, without the Lease's", f"{len(rest) / (end - begun):.1f}")
        self._note("1 requests/s of the Lease", f"{len(leases) / (end - begun):.1f}")
        self._note("1 writes/s", f"{sum(request.writes for request in rest) / (end - begun):.2f}")
        for what, rate in rates(rest, end - begun):
            self._note(f"1 of these {what}", f"{rate:.2f}")
        self._note("2 operator's CPU, of a core", f"{share.pop('operator'):.0f} %")
        peaks = f"{max(resident):.0f}, {mebibytes(operator.process_id, 'VmHWM'):.0f}"
        self._note("2 operator's memory, now, at most meanwhile, and since its start", f"{resident[-1]:.0f}, {peaks} MiB")
        self._note("2 CPU of " + ", ".join(share), ", ".join(f"{percent:.0f} %" for percent in share.values()))
        self._note("2 load of the machine", f"{os.getloadavg()[1]:.1f}")

    def changes(self, count: int, without: Collection[str] = ()) -> list[Change]:
        """One a second, each in a stack in which nothing else goes on, but none of these."""
        made: list[Change] = []
        moment = time.monotonic()
        for _ in range(count):
            change = self.fleet.change_somewhere(without)
            made += [change] if change is not None else []
            moment += 1.0
            time.sleep(max(0.0, moment - time.monotonic()))  # one a second
        return made

    def spread_of(self, changes: list[Change]) -> str:
        """How long the operator's first writes took, once they are there."""
        begun, deadline = min((change.answered_at for change in changes), default=0.0), time.time() + LAST_WRITE_SECONDS
        while math.inf in (found := waits(changes, self.fleet.audit.since(begun, time.time()))) and time.time() < deadline:
            time.sleep(0.5)  # between looks
        return spread(found)

    def changed(self) -> None:
        """One change a second."""
        begun = time.time()
        changes = self.changes(CHANGES)
        now = time.time()
        rate = sum(request.resource != "leases" for request in self.fleet.audit.since(begun, now)) / (now - begun)
        self._note("4 requests/s meanwhile", f"{rate:.1f}")
        self._note("4 change to first write, p50 / p99", self.spread_of(changes))

    def killed(self) -> None:
        """A leader's process dies, beside nothing and beside many rolls."""
        rolling = self.fleet.some(self.affected)
        victims = self.fleet.some(min(2 * KILLS, len(self.fleet.namespaces) - len(rolling)), rolling)
        alone = victims[: len(victims) // 2]
        self._note("5 leader killed until another is named, median (max)", _middle([self._kill(each, calm=True) for each in alone]))

        def roll() -> None:
            for namespace in rolling:
                self.fleet.roll(namespace)

        with self.fleet.meanwhile(roll, ROLL_SECONDS):
            time.sleep(2.0)  # the first pods go
            found = [self._kill(each, calm=False) for each in victims[len(alone) :]]
        self._note(f"5 the same while {MOST_AFFECTED} others roll, or a fifth", _middle(found))
        self.settle()

    def noisy(self) -> None:
        """A pod of one stack is changed all the time."""
        noisy = self.fleet.namespaces[0]
        used, start = cpu_seconds(self.fleet.operator.process_id), time.time()
        with self.fleet.meanwhile(partial(self.fleet.touch, noisy), NOISE_SECONDS) as times:
            begun = time.time()
            changes = self.changes(CHANGES, [noisy])
            rate = len(times) / (time.time() - begun)
            found = self.spread_of(changes)
        self._note("6 the others' 4 beside a noisy stack", f"{found}, {rate:.0f} changes/s of noise")
        share = (cpu_seconds(self.fleet.operator.process_id) - used) / (time.time() - start)
        self._note("6 operator's CPU meanwhile, of a core", f"{share:.0%}")

    def disturbed(self) -> None:
        """The operator, the API server, ensembles are away and come back: once while nothing changes, once with a change a second."""
        if self.calm is None:
            self.quiet()
        silent = self.fleet.some(self.affected)
        self._disturb("operator restarted", self._restart, ())
        restarts = self.fleet.operator.restarts
        self._disturb("API server away for a minute", self._take_api_server_away, ())
        self._note("7 restarts of the operator in the two times", str(self.fleet.operator.restarts - restarts))
        self._disturb(f"ZooKeeper of {MOST_AFFECTED} stacks, or a fifth, silent for a minute", partial(self._silence, silent), silent)

    def _disturb(self, what: str, disturb: Disturb, without: Collection[str]) -> None:
        end = disturb(partial(time.sleep, AWAY_SECONDS))
        time.sleep(BACK_SECONDS)  # what is looked at
        until = time.time()
        back = back_after(windows(self.fleet.audit.since(end, until), end, until), self.calm or 0)
        self._note(
            f"7 {what}: requests back to the quiet rate after", f"not within {BACK_SECONDS:g} s" if math.isinf(back) else shown(back)
        )
        self.settle()
        meanwhile: list[Change] = []
        disturb(lambda: meanwhile.extend(self.changes(int(AWAY_SECONDS), without)))
        after = self.changes(int(AFTER_SECONDS), without)
        if meanwhile:
            self._note(f"7 {what}: the others' 4 meanwhile", self.spread_of(meanwhile))
        self._note(f"7 {what}: the others' 4 in the {AFTER_SECONDS:g} s after", self.spread_of(after))
        self.settle()

    def _restart(self, _: Callable[[], None]) -> float:
        self.fleet.operator.stop()
        return self.fleet.operator.start()

    def _take_api_server_away(self, pass_time: Callable[[], None]) -> float:
        plane = self.fleet.plane
        plane.api_server.kill()
        pass_time()
        plane.api_server.start()
        wait_until_ready(plane)
        self.fleet.processes["API server"] = plane.api_server.process.pid
        return time.time()

    def _silence(self, namespaces: Sequence[str], pass_time: Callable[[], None]) -> float:
        self.fleet.player.order("silence", *namespaces)
        pass_time()
        self.fleet.player.order("speak", *namespaces)
        return time.time()

    def _kill(self, namespace: str, *, calm: bool) -> float:
        leader, began = self.fleet.leader(namespace), time.time()
        self.fleet.player.order("kill", namespace, leader)
        while (now := time.time()) < began + KILL_SECONDS and self.fleet.leader(namespace) == leader:
            time.sleep(0.02)  # between looks
        self.fleet.player.order("revive", namespace, leader)
        if calm:
            self.settle()
        return now - began if now < began + KILL_SECONDS else math.inf

    def _note(self, row: str, figure: str) -> None:
        self.rows[row] = figure
        print(f"  {row}: {figure}", flush=True)


def _middle(seconds: list[float]) -> str:
    return f"{shown(statistics.median_high(seconds))} ({shown(max(seconds))}, n = {len(seconds)})" if seconds else "–"


FIGURES: Mapping[int, Callable[[Bench], None] | None] = {
    1: Bench.quiet,
    2: Bench.quiet,
    3: None,
    4: Bench.changed,
    5: Bench.killed,
    6: Bench.noisy,
    7: Bench.disturbed,
}
"""What measures each; one and two are measured together, the third with each start."""


def measure(count: int, folder: Path, only: Collection[int]) -> dict[str, str]:
    """The rows of a fleet of so many stacks."""
    begun = time.time()
    with made(count, folder) as fleet:
        bench = Bench(fleet)
        bench._note("0 making the stacks", shown(time.time() - begun))
        bench.cold_start(told=3 in only)
        for step in dict.fromkeys(FIGURES[number] for number in sorted(only)):
            if step is not None:
                step(bench)
    return bench.rows
