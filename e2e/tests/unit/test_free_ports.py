"""Ports are given once, also to processes that know nothing of each other."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from herdkeeper_e2e import free_ports as ports

DRAW_ALL = """
from herdkeeper_e2e import free_ports as ports
ports.PORTS = range({first}, {end})
drawn = []
try:
    while True:
        drawn.append(ports.free_port())
except RuntimeError:
    print(*sorted(drawn), flush=True)
input()
"""


def test_a_port_is_given_once() -> None:
    drawn = ports.free_ports(200)
    assert len(set(drawn)) == 200
    assert all(port in ports.PORTS for port in drawn)


def test_another_process_gets_what_is_left_until_this_one_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    few = range(31_900, 31_910)
    monkeypatch.setattr(ports, "PORTS", few)
    monkeypatch.setattr(ports, "TRIES", 200)
    mine = {ports.free_port() for _ in range(3)}
    program = DRAW_ALL.format(first=few.start, end=few.stop)
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        others = {int(port) for port in other.stdout.readline().split()}
        assert others.isdisjoint(mine)
        assert others
        with pytest.raises(RuntimeError, match="no free port from 31900 to 31909"):
            ports.free_port()
        other.communicate("\n")
    assert ports.free_port() in others


def test_a_port_on_which_somebody_listens_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        monkeypatch.setattr(ports, "PORTS", range(port, port + 1))
        with pytest.raises(RuntimeError, match="end processes that listen there"):
            ports.free_port()


def test_a_file_of_holds_that_can_not_be_opened_is_named_and_no_port_is_blamed() -> None:
    program = "import tempfile; tempfile.tempdir = '/not-there'; from herdkeeper_e2e.free_ports import free_port; free_port()"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "No such file or directory: '/not-there/herdkeeper-ports-" in ended.stderr
    assert "no free port" not in ended.stderr
