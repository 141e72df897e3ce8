"""What the two controllers of a HerdDBCluster do together: the one of its objects names nodes to relieve, that of leadership moves."""

from __future__ import annotations

from dataclasses import replace

from situations import with_spec, with_status

from herdkeeper.herddb.leadership.plan import LeadershipPlan, plan_leadership
from herdkeeper.herddb.plan.cluster import plan_herddb
from herdkeeper.herddb.state.fleet import SqlFleet
from herdkeeper.planning.actions import Plan, soonest


def plan_both(fleet: SqlFleet) -> Plan:
    """The moves come first, by the status that the other plan notes."""
    whole = plan_herddb(fleet)
    relieved = tuple(whole.decided_fields.get("relievedNodes", ()))
    leaders = plan_leadership(replace(fleet, cluster=with_status(fleet.cluster, relieved_nodes=relieved)))
    again = soonest(leaders.requeue_after_seconds, whole.requeue_after_seconds)
    return Plan((*leaders.actions, *whole.actions), leaders.wait or whole.wait, again, later=leaders.later)


def plan_refused(fleet: SqlFleet) -> LeadershipPlan:
    """What goes on for a cluster whose spec is refused."""
    return plan_leadership(replace(fleet, cluster=with_spec(fleet.cluster, config={"server.port": "1"})))
