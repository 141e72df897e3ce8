"""The disk of a real ZooKeeper member has no byte left, and later has room again: no acknowledged znode is lost.

A disk that is full takes a part of a write: only a real one shows what is behind that part.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from plain_members import PATIENCE, Members, Writer

from herdkeeper_e2e.small_disk import small_disk
from herdkeeper_e2e.waiting import Pending, wait_for

DISK_MEBIBYTES, LEFT_BYTES, TOGETHER = 16, 12 << 10, 40
"""The disk takes some of the znodes that are written together, and a part of one."""


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Members]:
    with Members(tmp_path).running() as made:
        yield made


def test_a_member_whose_disk_was_full_has_all_that_it_acknowledged_afterwards(members: Members) -> None:
    with ExitStack() as mounted:
        disks = {number: mounted.enter_context(small_disk(members.volume(number), DISK_MEBIBYTES)) for number in members.addresses}
        for number in members.addresses:
            members.start(number)
        members.wait(*members.addresses)
        led = next(number for number in members.addresses if members.mode(number) == "leader")
        full, behind = (number for number in members.addresses if number != led)
        with members.client(led) as client:
            writer = Writer(client)
            assert writer.write(TOGETHER) == TOGETHER
            disks[full].fill(LEFT_BYTES)

            def has_no_room() -> bool | Pending:
                assert writer.write(TOGETHER) == TOGETHER
                return "No space left on device" in members.log(full).read_text() or Pending("it has room")

            wait_for("a disk that is full", has_no_room, PATIENCE)
            disks[full].give_room()

            def serves() -> str | Pending:
                members.start_those_that_ended()
                return members.mode(full) or Pending("it does not serve yet")

            wait_for("the member that has room again", serves, PATIENCE)
            members.stop(behind)
            assert writer.write(TOGETHER) == TOGETHER
        for number in (led, full):
            members.stop(number, signal.SIGKILL)
        for number in (full, behind):
            members.start(number)
        members.wait(full, behind)
        with members.client(full, behind) as client:
            assert sorted(writer.acknowledged - set(client.get_children("/"))) == []
