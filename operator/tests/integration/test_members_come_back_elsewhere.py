"""Three real ZooKeeper members, each on an address of its own, as pods have: one that restarts gets another address."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from plain_members import PATIENCE, Members, Writer

from herdkeeper_e2e.waiting import Pending, wait_for

_WAITED = re.compile(r"Notification time out: (\d+) ms")


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Members]:
    with Members(tmp_path).running() as made:
        yield made


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


def test_a_leader_whose_pod_was_deleted_by_force_forgets_nothing_that_it_acknowledged_beside_the_next_pod(members: Members) -> None:
    for number in members.addresses:
        members.start(number)
    members.wait(1, 2, 3)
    led = next(number for number in members.addresses if members.mode(number) == "leader")
    other, behind = (number for number in members.addresses if number != led)
    with members.client(led, other) as client:
        writer = Writer(client)
        assert writer.write(1) == 1
        members.stop(behind)
        first = members.processes.pop(led)
        try:
            members.log(led).unlink()
            members.addresses[led] = f"127.0.0.{20 + led}"
            members.start(led)  # the next pod, on the same volume

            def goes_on() -> bool | Pending:
                told = members.log(led).read_text()
                return "New election" in told or "this one waits for its end" in told or Pending("it starts")

            wait_for("the next pod's process", goes_on, PATIENCE)
            assert writer.write(10) == 10
        finally:
            first.kill()
            first.wait()
    members.stop(other, signal.SIGKILL)
    members.start(behind)
    members.wait(led, behind)
    with members.client(led, behind) as client:
        assert sorted(writer.acknowledged - set(client.get_children("/"))) == []
