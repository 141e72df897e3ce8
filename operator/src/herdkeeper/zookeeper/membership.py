"""Changes an ensemble to the declared one, one reconfig at a time, on the version that was read (docs/decisions/0102).

The second member joins as an unlisted follower (`Ensemble.unlisted_follower`): ZooKeeper gives a vote only if a quorum of the new
membership already follows, and observers don't count. Who does not serve leaves first, before another member joins.
"""

from __future__ import annotations

from herdkeeper.codecs.zookeeper.membership import Membership, Role
from herdkeeper.planning.actions import ChangeMembership, Wait
from herdkeeper.shared.counted import counted
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper.state import Encryption, Ensemble, observers_of, open_members, server_of, voters_of

MOST_BEHIND = 1000
"""Transactions that a joining member may lack when it gets its vote: a moment's worth."""
_COUNTER_BITS = 32
"""Bits of the counter below the leader's epoch in a zxid."""


def why_not_in_step(ensemble: Ensemble, members: tuple[int, ...]) -> str | None:
    """Returns which of these members does not serve, or lacks more than the leader's last transactions. None if all are in step."""
    named = ensemble.named
    for number in members:
        mode = ensemble.modes.get(number)
        if not ensemble.serves(number):
            return f"{named.pod(number)} does not serve ({ensemble.trouble_of(number)})"
        if mode is None or isinstance(mode, Unknown):
            return f"{named.pod(number)} does not report its role ({mode.why if mode is not None else 'it was not asked'})"
    leader = ensemble.leader
    if leader is None:
        return "no member, or more than one, reports that it leads"
    return next((why for number in members if (why := _why_behind(ensemble, leader, number)) is not None), None)


def _why_behind(ensemble: Ensemble, leader: int, number: int) -> str | None:
    named, newest, applied = ensemble.named, ensemble.zxids.get(leader), ensemble.zxids.get(number)
    if newest is None or applied is None:
        return f"{named.pod(leader if newest is None else number)} does not report its last transaction"
    # A member serves only once it has everything before the leader's epoch. It reports the old epoch until the first transaction of the new
    # one.
    same_epoch = newest >> _COUNTER_BITS == applied >> _COUNTER_BITS
    behind = newest - applied if same_epoch else newest & ((1 << _COUNTER_BITS) - 1)
    return f"{named.pod(number)} is {behind} transactions behind" if behind > MOST_BEHIND else None


def next_change(ensemble: Ensemble) -> ChangeMembership | Wait | None:
    """Returns the next membership change, why it must wait, or None if exactly the declared members vote."""
    membership, declared = ensemble.membership, ensemble.declared
    if isinstance(membership, Unknown):
        return Wait(Reason.UNREADABLE, membership.why)
    voters, observers = voters_of(membership), observers_of(membership)
    joining = [number for number in declared if number not in voters]
    leaving = [number for number in (*observers, *voters) if number not in declared]
    closing = () if joining or leaving else _closing(ensemble, membership)
    if not (joining or leaving or closing):
        return None
    if ensemble.password is None:
        return Wait(Reason.MEMBERSHIP_CHANGING, "the Secret with the password for membership changes is being created")
    staying = tuple(number for number in voters if number in declared)
    if (why := why_not_in_step(ensemble, staying)) is not None:
        return Wait(Reason.WAITING_FOR_OTHERS, f"the membership changes once every remaining member is in step: {why}")
    if closing:
        return _close(ensemble, membership, closing[0])
    joins = joining and all(map(ensemble.serves, leaving))
    return _join(ensemble, membership, joining[0]) if joins else _leave(ensemble, membership, leaving)


def _closing(ensemble: Ensemble, membership: Membership) -> tuple[int, ...]:
    """Returns the members whose plain ports are to be closed: all, once nobody needs one, since the first one decides."""
    if ensemble.cluster.spec.security.mode != "TLS" or (ensemble.plaintext_needed_by and not ensemble.closes_to_plaintext):
        return ()
    return open_members(membership)


def _close(ensemble: Ensemble, membership: Membership, number: int) -> ChangeMembership:
    """Move a running member's plain port to its loopback."""
    role = Role.PARTICIPANT if number in voters_of(membership) else Role.OBSERVER
    server, why = server_of(ensemble.cluster, number, role, closed=True), f"{ensemble.named.pod(number)} refuses plain text"
    return ChangeMembership(ensemble.address, ensemble.password or "", server, (), membership.version, Reason.UPDATING, why)


def _join(ensemble: Ensemble, membership: Membership, number: int) -> ChangeMembership | Wait:
    pod, size, version = ensemble.named.pod(number), len(membership.voters), membership.version
    address, password = ensemble.address, ensemble.password or ""
    listed, closed = number in observers_of(membership), ensemble.encryption is Encryption.REQUIRED
    if listed and size == 1:
        why = f"{pod} becomes a follower: next to a single voter, an observer can't get a vote"
        return ChangeMembership(address, password, None, (number + 1,), version, Reason.JOINING, why)
    if ensemble.unlisted_follower != number and not listed:
        server = server_of(ensemble.cluster, number, Role.OBSERVER, closed=closed)
        why = f"{pod} joins without a vote, beside {counted(size, 'voter')}"
        return ChangeMembership(address, password, server, (), version, Reason.JOINING, why)
    if (behind := why_not_in_step(ensemble, (number,))) is not None:
        return Wait(Reason.JOINING, f"{pod} gets its vote once it is in step: {behind}")
    server = server_of(ensemble.cluster, number, Role.PARTICIPANT, closed=closed)
    why = f"{pod} is in step and gets its vote, as one of {size + 1}"
    return ChangeMembership(address, password, server, (), version, Reason.JOINED, why)


def _leave(ensemble: Ensemble, membership: Membership, leaving: list[int]) -> ChangeMembership:
    """Remove observers first, then who does not serve, then the highest number, and the leader last. ZooKeeper (3.9.5,
    Leader.isQuorumSynced) refuses a membership of which no majority follows, such as that of one who serves and one who does not.
    """
    voters, leader = voters_of(membership), ensemble.leader
    number = min(leaving, key=lambda number: (number in voters, ensemble.serves(number), number == leader, -number))
    rest = len(set(voters) - {number})
    who = f"{ensemble.named.pod(number)}{', the leader,' if number == leader else ''}"
    why = f"{who} leaves and {counted(rest, 'voter stays', 'voters stay')}"
    return ChangeMembership(ensemble.address, ensemble.password or "", None, (number + 1,), membership.version, Reason.LEAVING, why)
