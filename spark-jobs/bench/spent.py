"""The resources of a program and its descendants: a Spark job is a Python process, a JVM and Python workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Spent:
    """What one program spent between two measurements."""

    wall_seconds: float
    cpu_seconds: float
    """User and system time of the process and of all descendants, also of ended ones."""
    peak_bytes: int
    """The sum of each process's peak resident memory: an upper bound, since peaks may differ in time."""


class Meter:
    """Counts from its creation on."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.monotonic(), _cpu_seconds(os.getpid())

    def read(self) -> Spent:
        """Returns what was spent since."""
        peak = sum(_peak_bytes(process) for process in _tree(os.getpid()))
        return Spent(time.monotonic() - self._wall, _cpu_seconds(os.getpid()) - self._cpu, peak)


def report(spent: Spent, **more: object) -> None:
    """Prints the last line of a contender's output, for `run_contender`."""
    print(json.dumps(asdict(spent) | more))


def run_contender(script: str, *arguments: str) -> tuple[Spent, dict[str, object]]:
    """Runs a contender in a process of its own, so that none shares memory or warm caches. Exits if it fails."""
    done = subprocess.run([sys.executable, script, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{Path(script).name} {' '.join(arguments)} ended with {done.returncode}")
    found = json.loads(done.stdout.splitlines()[-1])
    return Spent(found.pop("wall_seconds"), found.pop("cpu_seconds"), found.pop("peak_bytes")), found


def largest_child(program: str) -> int:
    """Peak resident bytes of the largest descendant that runs this program; 0 without one."""
    children = (process for process in _tree(os.getpid()) if process != os.getpid() and _program(process).startswith(program))
    return max((_peak_bytes(process) for process in children), default=0)


def _program(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text()
    except OSError:
        return ""


def _tree(root: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    waiting = [root]
    while waiting:
        process = waiting.pop()
        yield process
        waiting.extend(children.get(process, []))


def _cpu_seconds(root: int) -> float:
    return sum(_own_cpu_seconds(process) for process in _tree(root))


def cpu_seconds_of(process: int) -> float:
    """CPU seconds of a process and its ended children; 0 once it has ended."""
    return _own_cpu_seconds(process)


def _own_cpu_seconds(process: int) -> float:
    """CPU seconds of a process and its ended children; 0 once it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(field) for field in fields[11:15]) / _TICKS


def resident_bytes_of(process: int) -> int:
    """Resident memory of a process now; 0 once it has ended."""
    return _memory(process, "VmRSS")


def _peak_bytes(process: int) -> int:
    return _memory(process, "VmHWM")


def _memory(process: int, which: str) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(which)), 0)
