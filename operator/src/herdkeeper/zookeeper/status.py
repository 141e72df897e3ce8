"""Derives the status of a ZooKeeper ensemble."""

from __future__ import annotations

from herdkeeper.api.zookeeper_cluster import MOST_PLAINTEXT_USERS, NOBODY
from herdkeeper.codecs.zookeeper.membership import Membership
from herdkeeper.planning.lost_node import nodes_reachable
from herdkeeper.planning.summary import Health, Summary
from herdkeeper.shared import names
from herdkeeper.shared.conditions import ENCRYPTED
from herdkeeper.shared.counted import counted
from herdkeeper.shared.quorum import majority
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import text_of
from herdkeeper.zookeeper.authority_status import authorities_rolled
from herdkeeper.zookeeper.state import NUMBERS, Ensemble, voters_of


def summarize_zookeeper(ensemble: Ensemble) -> Summary:
    """Returns Ready if each declared member votes and serves."""
    named, members = ensemble.named, ensemble.declared
    ready = [number for number in members if ensemble.is_ready(number)]
    fields = {
        "address": ensemble.clients_address,
        "readyMembers": len(ready),
        "voters": None if ensemble.voters is None else len(ensemble.voters),
        "leader": None if ensemble.leader is None else named.pod(ensemble.leader),
        "authorityExpires": _authority_expires(ensemble),
        "plaintextNeededBy": _plaintext_needed_by(ensemble),
        "founded": ensemble.founded,
    }
    health = _health(ensemble)
    if health.status == "True" and not ensemble.founded:
        # clients write into a Ready ensemble: from then on an empty member must not vote
        health = Health("False", Reason.STARTING, _founding(ensemble))
    meanwhile = f"{len(ready)} of {counted(len(members), 'member is', 'members are')} Ready. Restarts and membership changes wait."
    lost = nodes_reachable(ensemble.objects, map(named.pod, NUMBERS), ensemble.machines, meanwhile)
    return Summary(health, fields, {**lost, **_encrypted(ensemble), **authorities_rolled(ensemble)})


def _authority_expires(ensemble: Ensemble) -> str | None:
    """Also of authorities that were lost: an ensemble with certificates of theirs must not be taken for one in plain text."""
    security, before = ensemble.security, ensemble.cluster.status
    if security is None:
        return None
    return text_of(security.expires) if security.expires is not None else before.authority_expires if before is not None else None


def _encrypted(ensemble: Ensemble) -> dict[str, Health]:
    """Returns the condition Encrypted by its type, or nothing if plain text is refused."""
    mode, until = ensemble.cluster.spec.security.mode, ""
    if not ensemble.encryption.accepts_plaintext:
        if not ensemble.open_pods:
            return {}
        until = f", until these have restarted: {', '.join(ensemble.open_pods)}"
    message = (
        f"plain text is accepted (spec.security.mode is {mode}): every client that reaches the ports can read and change the stack's "
        f"data{until}"
    )
    return {ENCRYPTED: Health("False", Reason.PLAINTEXT_ACCEPTED, message)}


def _plaintext_needed_by(ensemble: Ensemble) -> str | None:
    if not ensemble.accepts_both:
        return None
    text = ", ".join(ensemble.plaintext_needed_by) or NOBODY
    return text if len(text) <= MOST_PLAINTEXT_USERS else f"{text[: MOST_PLAINTEXT_USERS - 4]} ..."


def _health(ensemble: Ensemble) -> Health:
    named, declared, voters = ensemble.named, ensemble.declared, ensemble.voters
    away = [number for number in declared if not ensemble.is_ready(number)]
    serving = len(declared) - len(away)
    if ensemble.founded_before and (lost := _why_no_quorum(ensemble)) is not None:
        return Health("False", Reason.QUORUM_LOST, lost)
    if away:
        of_all = counted(len(declared), "member is", "members are")
        return Health("False", Reason.MEMBERS_NOT_READY, f"{serving} of {of_all} Ready ({_troubles(ensemble, away)})")
    if voters is not None and (missing := [named.pod(number) for number in declared if number not in voters]):
        return Health("False", Reason.MEMBERS_NOT_READY, f"{', '.join(missing)} has no vote yet")
    if ensemble.leader is None:
        return Health("False", Reason.NO_LEADER, "no member reports that it leads")
    return Health("True", Reason.READY, f"{counted(serving, 'member serves', 'members serve')}, {named.pod(ensemble.leader)} leads")


def _founding(ensemble: Ensemble) -> str:
    """Returns what an ensemble waits for whose declared members all serve. It may have begun with more, and can't shrink yet."""
    away = [number for number in ensemble.pods if not ensemble.is_ready(number)]
    if not (away and ensemble.founding):
        return "all members serve; their volumes are being marked as founded"
    return (
        f"the ensemble is founded once all {len(ensemble.pods)} members that it began with serve ({_troubles(ensemble, away)}), and "
        "shrinks only then. To begin with fewer, if nothing uses its address yet: delete this resource and its volume claims, and create "
        "it again"
    )


def _why_no_quorum(ensemble: Ensemble) -> str | None:
    """Returns what a person must know if too few voters serve. None if a quorum serves, or the voters are unknown."""
    if isinstance(ensemble.membership, Membership) or ensemble.known_membership is None:
        return None
    voters = voters_of(ensemble.known_membership)
    away = [number for number in voters if not ensemble.is_ready(number)]
    if len(voters) - len(away) >= majority(len(voters)):
        return None
    return (
        f"{len(voters) - len(away)} of {counted(len(voters), 'voter serves', 'voters serve')} and "
        f"{counted(majority(len(voters)), 'is', 'are')} needed, so nothing can be written ({_troubles(ensemble, away)}). "
        f"{_way_out(ensemble, voters)} (docs/how-to.md, 'When a quorum is lost')"
    )


def _way_out(ensemble: Ensemble, voters: tuple[int, ...]) -> str:
    """Returns advice for a lost quorum: an empty volume has no vote, and can't restore one. Whether the volume of a member with another
    number than the operator gives is empty is not known.
    """
    known = [number for number in voters if number in NUMBERS]
    empty = [ensemble.named.claim(number) for number in known if ensemble.marks.get(number) in (None, names.NEW)]
    if len(voters) - len(empty) >= majority(len(voters)):
        return "They serve again once a majority runs: find out why their pods don't start"
    have = "is empty and has" if len(empty) == 1 else "are empty and have"
    return (
        f"Only {len(voters) - len(empty)} of {len(voters)} volumes hold data. {' and '.join(empty)} {have} no vote: "
        "restore volumes from snapshots, or accept the data of one of the others"
    )


def _troubles(ensemble: Ensemble, away: list[int]) -> str:
    return "; ".join(f"{ensemble.named.pod(number)}: {ensemble.trouble_of(number)}" for number in away)
