"""Three hours of two namespaces, each with a whole stack whose resources have the same names, as metrics that Prometheus reads.

In `shop`, a bookie's volume fills up and the bookie turns read-only. A SQL node is away for a quarter of an hour and another one leads. A
deep audit is overdue, and a restore drill failed. `staging` is well.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from herdkeeper_e2e.free_ports import free_port
from herdkeeper_e2e.monitoring.promtool import program, promtool

LENGTH, STEP = 3 * 3600 + 600, 30
DAY = 86_400.0
Value = Callable[[float], float | None]
"""Of the seconds since the beginning; None while there is no series."""
_FULL, _AWAY, _BACK = 7200.0, 4000.0, 4900.0
_START_SECONDS = 60


@dataclass(frozen=True)
class Played:
    """A series."""

    name: str
    labels: Mapping[str, str]
    value: Value


def steady(value: float) -> Value:
    return lambda _: value


def waving(middle: float, by: float, phase: float = 0.0) -> Value:
    return lambda t: middle + by * (math.sin(t / 900 + phase) + 0.3 * math.sin(t / 97 + 3 * phase))


def counting(rate: float, phase: float = 0.0) -> Value:
    """A counter that goes up by about so much a second."""
    return lambda t: rate * (t + 300 * math.sin(t / 900 + phase)) + rate * 400


def _last(begin: float, period: float, phase: float) -> Value:
    """When something last ended that is done once in each period."""
    return lambda t: begin + (math.floor(t / period + phase) - phase) * period


_KINDS = ("ZooKeeperCluster", "BookKeeperCluster", "HerdDBCluster", "Tablespace", "ScheduledCheckpoint")
_BUCKETS = (("0.1", 0.9), ("0.5", 0.97), ("1.0", 0.995), ("+Inf", 1.0))
_REQUESTS: tuple[tuple[str, Mapping[str, str], float], ...] = (
    ("bookie_journal_JOURNAL_SYNC", {"journalIndex": "0"}, 2.2),
    ("bookkeeper_server_ADD_ENTRY_REQUEST", {}, 4.1),
    ("bookkeeper_server_READ_ENTRY_REQUEST", {}, 1.1),
)
"""Summaries of a bookie: their name, labels, and usual milliseconds."""


def series(begin: float) -> Iterator[Played]:
    """All of them; `begin` is in seconds since 1970."""
    yield from _of_operator()
    for stack in (_Stack("shop", True, begin), _Stack("staging", False, begin)):
        yield from stack.resources()
        yield from stack.recovery()
        yield from stack.proof()
        yield from stack.zookeeper()
        yield from stack.bookies()
        yield from stack.nodes()


def _of_operator() -> Iterator[Played]:
    yield Played("herdkeeper_queue_keys", {}, waving(14, 2))
    for number, kind in enumerate(_KINDS):
        yield Played("herdkeeper_reconcile_total", {"kind": kind, "outcome": "ok"}, counting(0.2, number))
        yield Played("herdkeeper_reconcile_total", {"kind": kind, "outcome": "failed"}, steady(0))
        for bound, share in _BUCKETS:
            yield Played("herdkeeper_reconcile_seconds_bucket", {"kind": kind, "le": bound}, counting(0.2 * share, number))
    for verb, rate in (("apply", 0.02), ("patch", 0.01)):
        yield Played("herdkeeper_writes_total", {"verb": verb, "kind": "HerdDBCluster"}, counting(rate))


@dataclass(frozen=True)
class _Stack:
    """The whole stack of a namespace. One in trouble also has more load."""

    namespace: str
    in_trouble: bool
    begin: float

    @property
    def load(self) -> float:
        return 1.0 if self.in_trouble else 0.3

    def of(self, **labels: str) -> dict[str, str]:
        return {"namespace": self.namespace, **labels}

    def target(self, kind: str, name: str, component: str, number: int) -> dict[str, str]:
        address = f"10.0.{int(self.in_trouble)}.{number}:8080"
        pod = f"{name}-{component}-{number}"
        return self.of(pod=pod, component=component, kind=kind, name=name, instance=address, job="herdkeeper")

    def resources(self) -> Iterator[Played]:
        for kind, name in (("ZooKeeperCluster", "zk"), ("BookKeeperCluster", "bk"), ("HerdDBCluster", "db")):
            about, well = self.of(kind=kind, name=name), not self.in_trouble or kind != "BookKeeperCluster"
            ready: Value = steady(1) if well else lambda t: float(t < _FULL)
            yield Played("herdkeeper_resource_ready", about, ready)
            yield Played(
                "herdkeeper_resource_condition", about | {"type": "Ready", "reason": "Ready" if well else "ReadOnly"}, steady(well)
            )
        drilled = self.of(kind="ScheduledCheckpoint", name="flights-nightly", type="RestoreDrilled")
        reason = {"reason": "DrillFailed" if self.in_trouble else "Drilled"}
        yield Played("herdkeeper_resource_condition", drilled | reason, steady(not self.in_trouble))

    def recovery(self) -> Iterator[Played]:
        for name, period, seconds in (("flights-nightly", DAY, 640), ("orders-hourly", DAY / 24, 95)):
            schedule = self.of(schedule=name)
            yield Played("herdkeeper_checkpoint_last_verified_timestamp_seconds", schedule, _last(self.begin, period, self.load / 2))
            yield Played("herdkeeper_restore_drill_seconds", schedule, steady(seconds * (0.5 + self.load)))
        for tablespace, period in (("flights", 300.0), ("orders", 60.0)):
            about = self.of(tablespace=tablespace)
            yield Played("herdkeeper_recovery_window_begins_timestamp_seconds", about, steady(self.begin - 7 * DAY))
            yield Played("herdkeeper_archive_current_timestamp_seconds", about, _last(self.begin, period, self.load / 2))
            for needer, days in (("Checkpoint", 3), ("Archive", 4)):
                ends = steady(self.begin + (days - self.load) * DAY)
                yield Played("herdkeeper_log_retention_ends_timestamp_seconds", about | {"needed_by": needer}, ends)
        expires = steady(self.begin + (11 if self.in_trouble else 80) * DAY)
        yield Played("herdkeeper_certificate_expires_timestamp_seconds", self.of(herddb="db"), expires)

    def proof(self) -> Iterator[Played]:
        cluster = self.of(bookkeeper="bk")
        for depth, age in (("Deep", 15.5 if self.in_trouble else 5.0), ("Light", 0.5)):
            about = cluster | {"depth": depth}
            yield Played("herdkeeper_audit_last_complete_timestamp_seconds", about, steady(self.begin - age * DAY))
            for severity in ("Critical", "UnderReplicated", "AtRisk", "Pending", "Unknown", "Low"):
                found = 12 if self.in_trouble and severity == "UnderReplicated" else 0
                yield Played("herdkeeper_audit_findings", about | {"severity": severity}, steady(found))
        if self.in_trouble:
            yield Played("herdkeeper_under_replicated_ledgers", cluster, lambda t: max(0.0, 240 - (t - _FULL) / 20) if t >= _FULL else 0.0)
            since = self.begin + _FULL
            yield Played("herdkeeper_under_replicated_since_timestamp_seconds", cluster, lambda t: since if t >= _FULL else None)
        else:
            yield Played("herdkeeper_under_replicated_ledgers", cluster, steady(0))

    def zookeeper(self) -> Iterator[Played]:
        for number in range(3):
            target = self.target("ZooKeeperCluster", "zk", "zookeeper", number)
            yield Played("up", target, steady(1))
            yield Played("avg_latency", target, waving(1.1 + number * 0.3 + self.load, 0.3, number))
            yield Played("outstanding_requests", target, _at_times(number))
            yield Played("znode_count", target, lambda t: self.load * (10_400 + t / 60))
            if number == 1:
                yield Played("leader_uptime", target, lambda t: (t + self.load * 9 * DAY) * 1000)

    def bookies(self) -> Iterator[Played]:
        for number in range(4):
            target = self.target("BookKeeperCluster", "bk", "bookie", number)
            full = self.in_trouble and number == 2
            writable: Value = (lambda t: float(t < _FULL)) if full else steady(1)
            used: Value = (lambda t: min(95.2, 80 + t / 480)) if full else waving(40 + 3 * number + 20 * self.load, 0.5)
            yield Played("up", target, steady(1))
            yield Played("bookie_SERVER_STATUS", target, writable)
            yield Played("bookie_ledger_writable_dirs", target, writable)
            yield Played("bookie_ledger_dir__ledgers_usage", target, used)
            yield Played("bookie_WRITE_BYTES", target, counting(2.1e6 * self.load, number))
            yield Played("bookie_READ_BYTES", target, counting(3e5 * self.load, number))
            yield Played("bookie_journal_JOURNAL_QUEUE_SIZE", target | {"journalIndex": "0"}, waving(2 * self.load, self.load, number))
            for name, labels, middle in _REQUESTS:
                for success, rate in (("true", 700.0), ("false", 0.02)):
                    about = {**target, **labels, "success": success}
                    yield Played(f"{name}_count", about, counting(rate * self.load, number))
                    yield Played(name, about | {"quantile": "0.99"}, waving(middle * (0.5 + self.load), middle / 6, number))
        yield Played("up", self.target("BookKeeperCluster", "bk", "autorecovery", 0), steady(1))

    def nodes(self) -> Iterator[Played]:
        for number in range(3):
            target = self.target("HerdDBCluster", "db", "herddb", number)
            if self.in_trouble and number == 0:
                yield from _within(0, _AWAY, self.node(target, number))
                yield from _within(_AWAY, _BACK, [Played("up", target, steady(0))])
                # A new pod has another address.
                yield from _within(_BACK, math.inf, self.node(target | {"instance": "10.0.1.99:9845"}, number))
            else:
                yield from self.node(target, number)

    def node(self, target: dict[str, str], number: int) -> Iterator[Played]:
        yield Played("up", target, steady(1))
        yield Played("herdkeeper_node_volume_bytes", target, steady(50e9))
        yield Played("herdkeeper_node_volume_free_bytes", target, waving((26 - number * 6) * 1e9 * (1.2 - 0.3 * self.load), 2e8))
        yield Played("jvm_memory_bytes_used", target | {"area": "heap"}, lambda t: 6e8 + (t * 7e5 * self.load + number * 1e8) % 9e8)
        yield Played("jvm_memory_direct_bytes_used", target, waving(1.2e8 + 5e7 * self.load, 1e7, number))
        for place, tablespace in enumerate(("flights", "orders")):
            about = target | {"tablespace": tablespace}
            entry = _applied(240 * self.load + 20 * place, number == place)
            yield Played("herdkeeper_node_leads", about, self._leads(number, place))
            yield Played("herdkeeper_node_log_ledger", about, steady(1377 + place))
            yield Played("herdkeeper_node_log_entry", about, entry)
            yield Played("herdkeeper_node_open_transactions", about, waving(1 + 3 * self.load, 2 * self.load, number))

    def _leads(self, number: int, place: int) -> Value:
        """Node 0 leads flights until it goes away, and node 1 leads orders; then node 1 leads both."""
        if self.in_trouble and place == 0:
            return lambda t: float(number == (0 if t < _AWAY else 1))
        return steady(number == place)


def _at_times(number: int) -> Value:
    return lambda t: float((t + number * 200) % 1800 < 60)


def _applied(rate: float, first: bool) -> Value:
    return lambda t: rate * t + 9000 - (0 if first else 40 + t % 90)


def _within(begin: float, end: float, played: Iterable[Played]) -> Iterator[Played]:
    for each in played:
        yield replace(each, value=_limited(each.value, begin, end))


def _limited(value: Value, begin: float, end: float) -> Value:
    return lambda t: value(t) if begin <= t < end else None


def open_metrics(now: float) -> str:
    """The samples until now, as `promtool tsdb create-blocks-from openmetrics` reads them."""
    begin = now - LENGTH
    lines = []
    for each in series(begin):
        labels = ",".join(f'{name}="{value}"' for name, value in each.labels.items())
        for at in range(0, LENGTH + 1, STEP):
            value = each.value(float(at))
            if value is not None:
                lines.append(f"{each.name}{{{labels}}} {float(value):.10g} {begin + at:.3f}\n")
    return "".join(lines) + "# EOF\n"


@contextmanager
def playing() -> Iterator[str]:
    """Gives the address of a Prometheus that has these metrics."""
    folder = Path(tempfile.mkdtemp(prefix="played-stack-"))
    try:
        (folder / "metrics").write_text(open_metrics(time.time()))
        (folder / "prometheus.yaml").write_text("{}")
        promtool("tsdb", "create-blocks-from", "openmetrics", str(folder / "metrics"), str(folder / "data"))
        listens = f"127.0.0.1:{free_port()}"
        settings = (
            f"--config.file={folder}/prometheus.yaml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address={listens}",
            # A real Prometheus sees at once that a series has ended; blocks do not tell it.
            f"--query.lookback-delta={STEP + STEP // 2}s",
        )
        with (folder / "log").open("w") as log, subprocess.Popen([program("prometheus"), *settings], stdout=log, stderr=log) as process:
            try:
                _wait_until_ready(f"http://{listens}", folder / "log")
                yield f"http://{listens}"
            finally:
                process.terminate()
    finally:
        shutil.rmtree(folder)


def _wait_until_ready(address: str, log: Path) -> None:
    """Raises TimeoutError with the end of its log."""
    for _ in range(_START_SECONDS * 5):
        try:
            urllib.request.urlopen(f"{address}/-/ready", timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
        else:
            return
    raise TimeoutError(f"Prometheus does not answer: {log.read_text()[-2000:]}")
