"""How an ensemble of ZooKeeper becomes the declared one: one member at a time, each step a reconfig on the version that was read.

A member joins as an observer, before its pod is there: whatever its volume holds, it has no vote. It gets one once it serves and has all
but the last transactions. The second member of all is the exception: ZooKeeper gives a vote only where a quorum of the new membership
follows already, observers do not count, and two voters are a quorum only together. So it joins as a follower that is not listed, which has
no vote either (unlisted_follower). A member leaves the membership before its pod goes; the leader leaves last, since its leave costs an
election. What is declared and what is committed is all that a next reconcile needs to go on: it may be another process.
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
"""A zxid is the leader's epoch above a counter of so many bits."""


def voters_of(membership: Membership) -> tuple[int, ...]:
    """Numbers of the members that vote, in order. Server ids are one above."""
    return tuple(sorted(server_id - 1 for server_id in membership.voters))


def observers_of(membership: Membership) -> tuple[int, ...]:
    """Numbers of the members that are listed without a vote, in order."""
    return tuple(sorted(server_id - 1 for server_id in membership.observers))


def unlisted_follower(cluster: ZooKeeperCluster, membership: Membership) -> int | None:
    """Number of the member that follows a single voter without being listed, until it gets its vote; None when there is none."""
    voters = voters_of(membership)
    joining = next((number for number in range(cluster.spec.replicas) if number not in voters), None)
    return None if len(voters) > 1 or joining in observers_of(membership) else joining


def leader_of(seen: ZooKeeperObserved) -> int | None:
    """Number of the member that says that it leads; None when there is none, or more than one."""
    leading = [number for number, mode in seen.modes.items() if mode in _LEADING]
    return leading[0] if len(leading) == 1 else None


def why_not_in_step(cluster: ZooKeeperCluster, seen: ZooKeeperObserved, members: tuple[int, ...]) -> str | None:
    """Why these members are not all in step with a leader, None when they are: each serves, and has all but the last transactions."""
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
    # A member serves only once it has all from before the leader's epoch, and shows the old one until the new one's first transaction.
    same_epoch = newest >> _COUNTER_BITS == applied >> _COUNTER_BITS
    behind = newest - applied if same_epoch else newest & ((1 << _COUNTER_BITS) - 1)
    return f"{named.pod(number)} is {behind} transactions behind" if behind > MOST_BEHIND else None


def change(cluster: ZooKeeperCluster, seen: ZooKeeperObserved) -> ChangeMembership | Wait | None:
    """The next change of the membership, why it must wait, or None when the declared members vote and no others are listed."""
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
        return Wait(Reason.MEMBERSHIP_CHANGING, "the Secret of the password that may change the membership is being made")
    staying = tuple(number for number in voters if number in declared)
    if (why := why_not_in_step(cluster, seen, staying)) is not None:
        return Wait(Reason.WAITING_FOR_OTHERS, f"the membership is changed once every member that stays is in step: {why}")
    if joining:
        return _join(cluster, seen, membership, joining[0])
    return _leave(cluster, seen, membership, leaving)


def _join(cluster: ZooKeeperCluster, seen: ZooKeeperObserved, membership: Membership, number: int) -> ChangeMembership | Wait:
    pod, size = cluster.names.pod(number), len(membership.voters)
    follows, listed = unlisted_follower(cluster, membership) == number, number in observers_of(membership)
    if listed and size == 1:
        why = f"{pod} becomes a follower: beside a single voter an observer gets no vote"
        return ChangeMembership(seen.address, seen.password or "", None, (number + 1,), membership.version, Reason.JOINING, why)
    if not follows and not listed:
        server, why = server_of(cluster, number, Role.OBSERVER), f"{pod} joins without a vote, beside {size} voters"
        return ChangeMembership(seen.address, seen.password or "", server, (), membership.version, Reason.JOINING, why)
    if (behind := why_not_in_step(cluster, seen, (number,))) is not None:
        return Wait(Reason.JOINING, f"{pod} gets its vote once it is in step: {behind}")
    server, why = server_of(cluster, number, Role.PARTICIPANT), f"{pod} is in step and gets its vote, as one of {size + 1}"
    return ChangeMembership(seen.address, seen.password or "", server, (), membership.version, Reason.JOINED, why)


def _leave(cluster: ZooKeeperCluster, seen: ZooKeeperObserved, membership: Membership, leaving: list[int]) -> ChangeMembership:
    """Observers first, then from the highest number downwards, and the leader last."""
    voters, leader = voters_of(membership), leader_of(seen)
    number = min(leaving, key=lambda number: (number in voters, number == leader, -number))
    rest = len(set(voters) - {number})
    why = f"{cluster.names.pod(number)} leaves{', which leads,' if number == leader else ''} and {rest} voters stay"
    return ChangeMembership(seen.address, seen.password or "", None, (number + 1,), membership.version, Reason.LEAVING, why)
