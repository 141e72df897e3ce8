"""Phrases about authorities, for events, answers and conditions."""

from __future__ import annotations

from collections.abc import Iterable

from herdkeeper.certificates.authority import Authority, name_of
from herdkeeper.shared.time import text_of
from herdkeeper.zookeeper.authority_state import AuthorityRoll


def expiry(roll: AuthorityRoll) -> str:
    """When the one that signs expired."""
    return f"{name_of(roll.authority.signing.certificate)} expired at {text_of(roll.authority.expires)}"


def takes_its_place(roll: AuthorityRoll) -> str:
    """Which authority takes the place of one that has expired."""
    return f"{expiry(roll)}, and {name_of(roll.signs_next.certificate)} takes its place"


def step_of(authority: Authority) -> str:
    """Which step a roll is in, and what must be so everywhere before the next one."""
    if authority.following is not None:
        step = "1 of 3, every server must trust both"
    elif authority.leaving is not None:
        step = "2 of 3, the new one signs and both are trusted"
    else:
        step = "3 of 3, no server must trust the old one any more"
    return f"{succession(authority)}: step {step}"


def succession(authority: Authority) -> str:
    """Which authority follows which, by name."""
    if authority.former is not None:
        return f"{name_of(authority.signing.certificate)} follows {name_of(authority.former)}"
    following = authority.signing if authority.following is None else authority.following
    return f"{name_of(following.certificate)} follows {name_of(authority.signing.certificate)}"


def once_none_serves(pods: Iterable[str]) -> str:
    """What waits for members that serve by connections from before, and how to have it now."""
    return f"once no member serves: they serve by connections from before, and refuse one that restarts. To {have_it_now(pods)}"


def have_it_now(pods: Iterable[str]) -> str:
    """What a person may do who does not want to wait, and what it costs."""
    return f"have it now, at the cost of some minutes without ZooKeeper, delete their pods (kubectl delete pod {' '.join(pods)})"
