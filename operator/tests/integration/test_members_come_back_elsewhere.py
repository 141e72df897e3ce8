"""Three real ZooKeeper members, each on an address of its own, as pods have: one that restarts gets another address."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_members import JVM_OPTIONS, home, start_member

from herdkeeper_e2e.free_ports import free_ports
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

PATIENCE = Limit(240, 0.2)
_WAITED = re.compile(r"Notification time out: (\d+) ms")


class Members:
    """Members 1 to 3, whose names are in a file of hosts."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home, self.hosts = folder, home(folder), folder / "hosts"
        self.client, self.quorum, self.election, self.closed = free_ports(4)
        self.addresses = {number: f"127.0.0.{10 + number}" for number in (1, 2, 3)}
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, number: int, astray: int | None = None) -> None:
        """With the image's entry point, on its own volume. It finds nobody where it would follow the member `astray`."""
        names = "".join(f"{address} member-{each}.test\n" for each, address in self.addresses.items())
        self.hosts.with_suffix(".new").write_text(names)
        self.hosts.with_suffix(".new").rename(self.hosts)  # members read it at any time
        config, volume = self.folder / f"config-{number}", self.folder / f"volume-{number}"
        for made in (config, volume):
            made.mkdir(exist_ok=True)
        host = "member-{0}.test"
        server = f"server.{{0}}={host}:{{1}}:{self.election}:participant;{host}:{self.client}\n"
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

    def log(self, number: int) -> Path:
        return self.folder / f"member-{number}.log"

    def stop(self, number: int) -> None:
        process = self.processes.pop(number)
        process.terminate()
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
            with socket.create_connection((self.addresses[number], self.client), 2) as asked:
                asked.sendall(b"srvr")
                said = asked.makefile().read()
        except OSError:
            return None
        return next((line.partition(": ")[2] for line in said.splitlines() if line.startswith("Mode")), None)

    def wait(self, *numbers: int) -> None:
        wait_for("members that serve", lambda: all(map(self.mode, numbers)) or Pending("some look for a leader"), PATIENCE)


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Members]:
    made = Members(tmp_path)
    try:
        yield made
    finally:
        for process in made.processes.values():
            process.kill()
            process.wait()


def test_a_member_that_comes_back_under_another_address_asks_again_every_three_seconds_until_it_follows(members: Members) -> None:
    for number in members.addresses:
        members.start(number)
    members.wait(1, 2, 3)
    for number in [each for each in (1, 2, 3) if members.mode(each) == "follower"]:
        members.move(number)
        members.wait(number)
        waited = [int(millis) for millis in _WAITED.findall(members.log(number).read_text())]
        assert max(waited, default=0) <= 3000


def test_a_leader_whose_only_follower_gave_up_looks_for_a_leader_again_with_it(members: Members) -> None:
    members.start(1, astray=2)
    members.start(2)  # elected by both: of equals the one with the highest number

    def quits() -> bool | Pending:
        return "Quit leading due to voter changed mind" in members.log(2).read_text() or Pending("it waits for a follower")

    wait_for("a leader that gives up", quits, PATIENCE)
    members.start(3)
    members.wait(2, 3)
