"""Three real ZooKeeper members, started by the image's own entry point, each on an address of its own, as pods have. No operator."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError
from real_members import JVM_OPTIONS, home, start_member

from herdkeeper_e2e.free_ports import free_ports
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

PATIENCE = Limit(240, 0.2)
ZNODE_BYTES = 3001
ANSWERS_SECONDS = 5.0
"""For all znodes that are sent at once. Those that are acknowledged later count as never promised."""


class Members:
    """Members 1 to 3, whose names are in a file of hosts."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home, self.hosts = folder, home(folder), folder / "hosts"
        self.client_port, self.quorum, self.election, self.closed = free_ports(4)
        self.addresses = {number: f"127.0.0.{10 + number}" for number in (1, 2, 3)}
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, number: int, astray: int | None = None) -> None:
        """With the image's entry point, on its own volume. It finds nobody where it would follow the member `astray`."""
        names = "".join(f"{address} member-{each}.test\n" for each, address in self.addresses.items())
        self.hosts.with_suffix(".new").write_text(names)
        self.hosts.with_suffix(".new").rename(self.hosts)  # members read it at any time
        config, volume = self.folder / f"config-{number}", self.volume(number)
        for made in (config, volume):
            made.mkdir(exist_ok=True)
        host = "member-{0}.test"
        server = f"server.{{0}}={host}:{{1}}:{self.election}:participant;{host}:{self.client_port}\n"
        ports = {each: self.closed if each == astray else self.quorum for each in self.addresses}
        (config / "zoo.cfg.dynamic").write_text("".join(server.format(each, port) for each, port in ports.items()))
        (config / "founding").write_text("true")
        settings = {
            "dataDir": volume / "store",
            "tickTime": 2000,
            "initLimit": 10,
            "syncLimit": 5,
            "reconfigEnabled": "true",
            "standaloneEnabled": "false",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "srvr",
        }
        (config / "zoo.cfg").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        options = f"{JVM_OPTIONS} -Djdk.net.hosts.file={self.hosts}"
        folders, host = (self.home, config, volume), f"zk-zookeeper-{number - 1}"
        self.processes[number] = start_member(host, folders, self.log(number), JVM_OPTIONS=options)

    @contextmanager
    def running(self) -> Iterator[Members]:
        """None is left behind."""
        try:
            yield self
        finally:
            for number in tuple(self.processes):
                self.stop(number, signal.SIGKILL)

    def start_those_that_ended(self) -> None:
        """As the kubelet does."""
        for number, process in self.processes.items():
            if process.poll() is not None:
                self.start(number)

    def volume(self, number: int) -> Path:
        return self.folder / f"volume-{number}"

    def log(self, number: int) -> Path:
        return self.folder / f"member-{number}.log"

    def stop(self, number: int, how: signal.Signals = signal.SIGTERM) -> None:
        process = self.processes.pop(number)
        process.send_signal(how)
        process.wait(60)

    def move(self, number: int) -> None:
        """A member stops, and starts again under another address. Nobody answers at the one before."""
        self.stop(number)
        self.log(number).unlink()
        self.addresses[number] = f"127.0.0.{20 + number}"
        self.start(number)

    def mode(self, number: int) -> str | None:
        """What a member says that it is; None if it does not serve."""
        try:
            with socket.create_connection((self.addresses[number], self.client_port), 2) as asked:
                asked.sendall(b"srvr")
                said = asked.makefile().read()
        except OSError:
            return None
        return next((line.partition(": ")[2] for line in said.splitlines() if line.startswith("Mode")), None)

    def wait(self, *numbers: int) -> None:
        wait_for("members that serve", lambda: all(map(self.mode, numbers)) or Pending("some look for a leader"), PATIENCE)

    @contextmanager
    def client(self, *numbers: int) -> Iterator[KazooClient]:
        hosts = ",".join(f"{self.addresses[number]}:{self.client_port}" for number in numbers)
        client = KazooClient(hosts=hosts, timeout=10, connection_retry={"max_tries": -1, "max_delay": 0.5})
        client.start(timeout=60)
        try:
            yield client
        finally:
            client.stop()
            client.close()


class Writer:
    """Makes numbered znodes, and knows which ones were acknowledged."""

    def __init__(self, client: KazooClient) -> None:
        self.client, self.acknowledged, self._numbers = client, set[str](), count()

    def write(self, many: int) -> int:
        """Sends so many at once; returns how many were acknowledged."""
        names = [f"{next(self._numbers):08d}" for _ in range(many)]
        asked = {name: self.client.create_async(f"/{name}", b"x" * ZNODE_BYTES) for name in names}
        before, deadline = len(self.acknowledged), time.monotonic() + ANSWERS_SECONDS
        for name, answer in asked.items():
            try:
                answer.get(timeout=max(0.0, deadline - time.monotonic()))
                self.acknowledged.add(name)
            except (KazooException, KazooTimeoutError):
                pass  # nobody has promised it
        return len(self.acknowledged) - before
