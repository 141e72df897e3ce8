"""A stack of ZooKeeper 3.8 and BookKeeper 4.17 is upgraded to what the project ships, under SQL and striped ledgers: first the ensemble,
then the bookies, one server at a time. What the earlier versions wrote is read by the later ones, to the last entry."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import Stack, say
from image_steps import LABELS, ROLL, all_run, want_image
from load import Load
from own_stack import PLAIN_TEXT, stack_of_its_own
from proof import all_is_whole
from under_load import during, one_at_a_time, seen_away

from herdkeeper_e2e import built_images
from herdkeeper_e2e.cluster import REPOSITORY, run
from herdkeeper_e2e.kubectl import SERVERS, Kubectl, Object
from herdkeeper_e2e.pod_watch import PodWatch
from herdkeeper_e2e.waiting import wait_for

ROWS = 200
EARLIER = {"ZooKeeperCluster": "herdkeeper/zookeeper:3.8.4", "BookKeeperCluster": "herdkeeper/bookkeeper:4.17.3"}
"""As e2e/images/earlier.sh builds them."""
SHIPPED = {"ZooKeeperCluster": built_images.ZOOKEEPER, "BookKeeperCluster": built_images.BOOKKEEPER}
JARS = {
    "ZooKeeperCluster": "/opt/zookeeper/lib/zookeeper-[0-9]*.jar",
    "BookKeeperCluster": "/opt/bookkeeper/lib/bookkeeper-server-[0-9]*.jar",
}


@pytest.fixture
def earlier(kubectl: Kubectl) -> Iterator[Stack]:
    """The quickstart on the earlier versions, in a namespace of its own, Ready."""
    run([str(REPOSITORY / "e2e/images/earlier.sh")], kubectl.environment, say)
    changes: dict[str, Object] = {kind: {"image": image} for kind, image in EARLIER.items()}
    changes["ZooKeeperCluster"] |= PLAIN_TEXT  # no stack of these versions was founded with certificates
    with stack_of_its_own(kubectl, "upgrade", changes) as stack:
        yield stack


def versions(stack: Stack, kind: str) -> set[str]:
    """What the pods of a resource have on their class paths."""
    return {
        str(stack.kubectl.exec(pod["metadata"]["name"], "sh", "-c", f"ls {JARS[kind]}")).strip()
        for pod in stack.kubectl.list("pods", LABELS[kind])
    }


def upgrade(stack: Stack, kind: str) -> None:
    """As a person does it: another image in the resource; ends when all of its pods run that and nothing is left to do."""
    before = versions(stack, kind)
    want_image(stack, kind, SHIPPED[kind])
    wait_for(f"the upgrade of {kind}", lambda: all_run(stack, {kind: SHIPPED[kind]}), ROLL, say)
    say(f"{before} became {versions(stack, kind)}")


def test_earlier_versions_are_upgraded_one_server_at_a_time_and_nothing_is_lost(earlier: Stack) -> None:
    for kind, image in EARLIER.items():
        jars = versions(earlier, kind)
        assert len(jars) == 1
        assert image.rpartition(":")[2] in jars.pop()
    load = Load(earlier, "upgraded").acknowledges(ROWS)
    earlier.sql.switch_over(earlier.sql.other())
    load.acknowledges(ROWS)
    watch = PodWatch(earlier.kubectl, SERVERS)

    for kind in EARLIER:
        with during(f"{kind} upgraded", load, ROWS):
            upgrade(earlier, kind)
        assert len(versions(earlier, kind)) == 1

    one_at_a_time(seen_away(watch))
    # BookKeeper 4.17's ledgers are replayed by a SQL node that starts anew, and every copy is read
    earlier.sql.delete(earlier.sql.other())
    earlier.wait_until_ready()
    all_is_whole(load, "after-the-upgrade")
