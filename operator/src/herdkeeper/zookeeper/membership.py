"""Changes an ensemble to the declared one, one member at a time. Each step is a reconfig on the version that was read.

A member joins as an observer before its pod exists, so its volume never gets a vote. It becomes a voter once it serves and has all but the
last transactions.

The second member is the exception: ZooKeeper gives a vote only if a quorum of the new membership already follows. Observers don't count,
and two voters are a quorum only together. So it joins as an unlisted follower, which has no vote either (unlisted_follower).

A member leaves the membership before its pod is deleted. The leader leaves last, since that costs an election. The declared and the
committed membership are all the state that a next reconcile needs.
"""

from __future__ import annotations

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.codecs.zookeeper.membership import Membership, Role
from herdkeeper.planning.actions import ChangeMembership, Wait
from herdkeeper.shared.lost_node import trouble_of
from herdkeeper.shared.names import ZooKeeperNames
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper.build import server_of
from herdkeeper.zookeeper.state import ZooKeeperObserved

MOST_BEHIND = 1000
"""Transactions that a joining member may lack when it gets its vote: a moment's worth."""
_LEADING = ("leader", "standalone")
_COUNTER_BITS = 32
"""Bits of the counter below the leader's epoch in a zxid."""


def voters_of(membership: Membership) -> tuple[int, ...]:
    """Returns the numbers of the voters, in order. Server ids are one higher."""
    return tuple(sorted(server_id - 1 for server_id in membership.voters))


def observers_of(membership: Membership) -> tuple[int, ...]:
    """Returns the numbers of the observers, in order."""
    return tuple(sorted(server_id - 1 for server_id in membership.observers))


def unlisted_follower(cluster: ZooKeeperCluster, membership: Membership) -> int | None:
    """Returns the number of the unlisted follower of a single voter, until it gets its vote. None if there is none."""
    voters = voters_of(membership)
    joining = next((number for number in range(cluster.spec.replicas) if number not in voters), None)
    return None if len(voters) > 1 or joining in observers_of(membership) else joining


def leader_of(seen: ZooKeeperObserved) -> int | None:
    """Returns the number of the member that reports that it leads. None if no member does, or several do."""
    leading = [number for number, mode in seen.modes.items() if mode in _LEADING]
    return leading[0] if len(leading) == 1 else None


def why_not_in_step(cluster: ZooKeeperCluster, seen: ZooKeeperObserved, members: tuple[int, ...]) -> str | None:
    """Returns why these members are not in step with a leader: one does not serve, or lacks more than the last transactions. None if all
    are.
    """
    named = cluster.names
    for number in members:
        pod, mode = seen.objects.get("Pod", named.pod(number)), seen.modes.get(number)
        stops = pod is None or pod["metadata"].get("deletionTimestamp") is not None
        if stops or not (seen.objects.pod_ready(named.pod(number)) or isinstance(mode, str)):
            return f"{named.pod(number)} does not serve ({trouble_of(pod, seen.machines)})"
        if mode is None or isinstance(mode, Unknown):
            return f"{named.pod(number)} does not report its role ({mode.why if mode is not None else 'it was not asked'})"
    leader = leader_of(seen)
    if leader is None:
        return "no member, or more than one, reports that it leads"
    return next((why for number in members if (why := _why_behind(named, seen, leader, number)) is not None), None)


def _why_behind(named: ZooKeeperNames, seen: ZooKeeperObserved, leader: int, number: int) -> str | None:
    newest, applied = seen.zxids.get(leader), seen.zxids.get(number)
    if newest is None or applied is None:
        return f"{named.pod(leader if newest is None else number)} does not report its last transaction"
    # A member serves only once it has everything before the leader's epoch. It reports the old epoch until the first transaction of the new
    # one.
    same_epoch = newest >> _COUNTER_BITS == applied >> _COUNTER_BITS
    behind = newest - applied if same_epoch else newest & ((1 << _COUNTER_BITS) - 1)
    return f"{named.pod(number)} is {behind} transactions behind" if behind > MOST_BEHIND else None


def change(cluster: ZooKeeperCluster, seen: ZooKeeperObserved) -> ChangeMembership | Wait | None:
    """Returns the next membership change, why it must wait, or None if exactly the declared members vote."""
    membership = seen.membership
    if isinstance(membership, Unknown):
        return Wait(Reason.UNREADABLE, membership.why)
    declared = range(cluster.spec.replicas)
    voters, observers = voters_of(membership), observers_of(membership)
    joining = [number for number in declared if number not in voters]
    leaving = [number for number in (*observers, *voters) if number not in declared]
    if not joining and not leaving:
        return None
    if seen.password is None:
        return Wait(Reason.MEMBERSHIP_CHANGING, "the Secret with the password for membership changes is being created")
    staying = tuple(number for number in voters if number in declared)
    if (why := why_not_in_step(cluster, seen, staying)) is not None:
        return Wait(Reason.WAITING_FOR_OTHERS, f"the membership changes once every remaining member is in step: {why}")
    if joining:
        return _join(cluster, seen, membership, joining[0])
    return _leave(cluster, seen, membership, leaving)


def _join(cluster: ZooKeeperCluster, seen: ZooKeeperObserved, membership: Membership, number: int) -> ChangeMembership | Wait:
    pod, size = cluster.names.pod(number), len(membership.voters)
    follows, listed = unlisted_follower(cluster, membership) == number, number in observers_of(membership)
    if listed and size == 1:
        why = f"{pod} becomes a follower: next to a single voter, an observer can't get a vote"
        return ChangeMembership(seen.address, seen.password or "", None, (number + 1,), membership.version, Reason.JOINING, why)
    if not follows and not listed:
        server, why = server_of(cluster, number, Role.OBSERVER), f"{pod} joins without a vote, beside {size} voters"
        return ChangeMembership(seen.address, seen.password or "", server, (), membership.version, Reason.JOINING, why)
    if (behind := why_not_in_step(cluster, seen, (number,))) is not None:
        return Wait(Reason.JOINING, f"{pod} gets its vote once it is in step: {behind}")
    server, why = server_of(cluster, number, Role.PARTICIPANT), f"{pod} is in step and gets its vote, as one of {size + 1}"
    return ChangeMembership(seen.address, seen.password or "", server, (), membership.version, Reason.JOINED, why)


def _leave(cluster: ZooKeeperCluster, seen: ZooKeeperObserved, membership: Membership, leaving: list[int]) -> ChangeMembership:
    """Remove observers first, then the highest number, and the leader last."""
    voters, leader = voters_of(membership), leader_of(seen)
    number = min(leaving, key=lambda number: (number in voters, number == leader, -number))
    rest = len(set(voters) - {number})
    why = f"{cluster.names.pod(number)}{', the leader,' if number == leader else ''} leaves and {rest} voters stay"
    return ChangeMembership(seen.address, seen.password or "", None, (number + 1,), membership.version, Reason.LEAVING, why)
