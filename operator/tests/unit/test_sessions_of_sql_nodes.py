"""How long a SQL node may be without ZooKeeper before anybody takes it for dead."""

from __future__ import annotations

from herdkeeper.api.tablespace import Failover
from herdkeeper.herddb.build import ZOOKEEPER_SESSION_SECONDS
from herdkeeper.herddb.leadership.decision import HEARTBEAT_SECONDS, SELF_HELP_SECONDS
from herdkeeper.process.lease import DURATION_SECONDS, RETRY_SECONDS


def test_a_node_that_lost_its_member_of_zookeeper_has_another_one_before_its_leaderships_are_taken() -> None:
    silent_member = ZOOKEEPER_SESSION_SECONDS * 2 / 3
    address_that_does_not_answer = ZOOKEEPER_SESSION_SECONDS / 3  # of three members; less of five
    heartbeat = 1
    assert silent_member + address_that_does_not_answer + heartbeat < Failover().max_leader_inactivity_seconds


def test_the_operator_judges_a_leader_before_herddb_does_which_knows_no_second_sign() -> None:
    failover = Failover()
    operators = max(failover.hung_leader_seconds, SELF_HELP_SECONDS) + HEARTBEAT_SECONDS
    assert operators * 2 < failover.max_leader_inactivity_seconds


def test_an_operator_that_ended_is_replaced_before_herddb_takes_leaders_for_dead() -> None:
    assert Failover().max_leader_inactivity_seconds > DURATION_SECONDS + RETRY_SECONDS
