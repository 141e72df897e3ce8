"""The processes of the benchmark: the operator, started again as a kubelet does when it ends, and the player; and what they take."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from herdkeeper_e2e.control_plane import HOME, ControlPlane
from herdkeeper_e2e.free_ports import free_port

FIRST_BACK_OFF_SECONDS, LONGEST_BACK_OFF_SECONDS = 10.0, 300.0
"""A kubelet starts a container that has ended at once, and then after a time that doubles."""
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process_id: int) -> float:
    """What a process has used so far; 0 for one that is gone."""
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def mebibytes(process_id: int, field: str) -> float:
    """A size in /proc/…/status: VmRSS now, VmHWM at most so far; 0 for one that is gone."""
    try:
        found = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{process_id}/status").read_text())
    except OSError:
        return 0.0
    return int(found[1]) / 1024 if found else 0.0


@dataclass
class Operator:
    """`herdkeeper run` under the chart's ServiceAccount, on all namespaces. `settings` are environment variables beside the defaults."""

    plane: ControlPlane
    log: Path
    settings: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    restarts: int = 0
    _unwanted: threading.Event = field(default_factory=threading.Event)
    _process: subprocess.Popen[bytes] | None = None
    _keeper: threading.Thread | None = None

    @property
    def process_id(self) -> int:
        """0 while none runs."""
        return self._process.pid if self._process is not None else 0

    def start(self) -> float:
        """Start it; when, in seconds since 1970."""
        self._unwanted.clear()
        began = time.time()
        self._start()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()
        return began

    def stop(self) -> None:
        """SIGTERM, and wait for its end."""
        self._unwanted.set()
        while self._process is not None and self._keeper is not None and self._keeper.is_alive():
            self._process.send_signal(signal.SIGTERM)
            self._keeper.join(30.0)

    def metric(self, name: str) -> dict[str, float]:
        """A metric that it serves, by its labels as text; empty while it serves none."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as answer:
                found = re.findall(rf"^{name}(?:\{{(.*)\}})? (\S+)$", answer.read().decode(), re.MULTILINE)
        except (urllib.error.URLError, OSError):
            return {}
        return {labels: float(value) for labels, value in found}

    def _start(self) -> None:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.environ["PYTHONPATH"],
            "MALLOC_ARENA_MAX": "2",  # as in its image
            "KUBECONFIG": str(self.plane.operator_kubeconfig),
            "PYTHONWARNINGS": "ignore:Unverified HTTPS request",
            "HERDKEEPER_POD_NAMESPACE": HOME,
            "HERDKEEPER_POD_NAME": "herdkeeper-0",
            "HERDKEEPER_HTTP_PORT": str(self.port),
            **self.settings,
        }
        command = [sys.executable, "-m", "herdkeeper_e2e.fleet.launcher", "run"]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)

    def _keep(self) -> None:
        pause = 0.0
        while self._process is not None:
            self._process.wait()
            if self._unwanted.wait(pause):
                return
            pause = min(max(2 * pause, FIRST_BACK_OFF_SECONDS), LONGEST_BACK_OFF_SECONDS)
            self.restarts += 1
            self._start()


@dataclass
class Player:
    address: str
    zookeeper: str
    log: Path

    def __post_init__(self) -> None:
        command = [sys.executable, "-m", "herdkeeper_e2e.fleet.player", self.address, self.zookeeper]
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output, text=True)

    def order(self, *words: str) -> None:
        """Give an order and wait until it is done. RuntimeError with the end of its log when it has ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        if not self.process.stdout.readline():
            raise RuntimeError(f"the player ended: {self.log.read_text()[-3000:]}")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
