"""What the two controllers of a HerdDBCluster do together: the one of its objects names nodes to relieve, that of leadership moves."""

from __future__ import annotations

from situations import with_spec, with_status

from herdkeeper.api import HerdDBCluster
from herdkeeper.herddb.leadership.plan import LeadershipPlan, plan_leadership
from herdkeeper.herddb.plan.cluster import plan_herddb
from herdkeeper.herddb.state.cluster import HerdDBObserved
from herdkeeper.planning.actions import Plan, soonest


def plan_both(cluster: HerdDBCluster, seen: HerdDBObserved) -> Plan:
    """The moves come first, by the status that the other plan notes."""
    whole = plan_herddb(cluster, seen)
    relieved = tuple(whole.notes.get("relievedNodes", ()))
    leaders = plan_leadership(with_status(cluster, relieved_nodes=relieved), seen)
    again = soonest(leaders.requeue_after_seconds, whole.requeue_after_seconds)
    return Plan((*leaders.actions, *whole.actions), leaders.wait or whole.wait, again, later=leaders.later)


def plan_refused(cluster: HerdDBCluster, seen: HerdDBObserved) -> LeadershipPlan:
    """What goes on for a cluster whose spec is refused."""
    return plan_leadership(with_spec(cluster, config={"server.port": "1"}), seen)
