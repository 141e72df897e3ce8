"""Plans how another authority takes over (docs/decisions/0106), one step at a time, each only when the one before is everywhere.

An authority that has expired is replaced at once: nobody accepts what it signed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.certificates.authority import Authority, authority_data, in_place_of, name_of, next_step, renewal_time
from herdkeeper.certificates.holders import fingerprints
from herdkeeper.certificates.issue import AUTHORITY_LIFE
from herdkeeper.planning.actions import Action, AnswerRequest, Request, SetAuthority
from herdkeeper.shared import names
from herdkeeper.shared.objects import annotation
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper.authority_state import AuthorityRoll, Begin, Expired, GiveUp, Outdated, Replace
from herdkeeper.zookeeper.authority_words import step_of, succession, takes_its_place
from herdkeeper.zookeeper.build import build_authority
from herdkeeper.zookeeper.issuers import issuers
from herdkeeper.zookeeper.state import Ensemble

TIME_TO_LOAD = timedelta(minutes=10)
"""By then a running pod has a changed Secret's files, and its process has read them; no process reports that it has. The kubelet brings
them within a minute and a half, in a large cluster that caches Secrets within five minutes more. BookKeeper reads them again after ten
seconds, a SQL node's port within some more.
"""


def is_successor_due(cluster: ZooKeeperCluster, authority: Authority, now: datetime) -> bool:
    """Returns whether the operator should make a successor: on request, or because of this authority's age."""
    asked = names.ROLL_AUTHORITIES_ANNOTATION in cluster.metadata.annotations
    return asked or now >= renewal_time(authority.signing.certificate, AUTHORITY_LIFE)


def roll_authorities(ensemble: Ensemble, *, settled: bool) -> tuple[Action, ...]:
    """Returns the next steps of authorities, and the answer to a request.

    `settled`: nothing else of the ensemble is to be done, and all members have started with what they read only then. Both authorities go
    on together, since members restart for each step.
    """
    # While one is past the first step, the other one begins nothing: the answer refuses it.
    rolls = [replace(roll, change=None) for roll in ensemble.rolls] if _past_first_step(ensemble) else ensemble.rolls
    behind = "the ensemble changes" if not settled else what_is_behind(rolls)
    loaded = loaded_at(rolls)
    # One that begins goes first, also if a Secret or pod is behind with the other one: the answer says that both begin.
    beginning = [roll for roll in rolls if isinstance(roll.change, Begin | Replace | GiveUp)] if settled else []
    going_on = beginning or (rolls if behind is None else ())
    steps = [(roll, _advance(roll, loaded) if roll in going_on else _wait_again(roll, behind)) for roll in rolls]
    written = (_write(ensemble.cluster, roll, *step) for roll, step in steps if step is not None)
    return (*written, *_answer(ensemble, settled=settled))


def _past_first_step(ensemble: Ensemble) -> list[AuthorityRoll]:
    """Returns the rolls in which the successor signs already."""
    return [roll for roll in ensemble.rolls if roll.authority.former is not None]


def what_is_behind(rolls: Sequence[AuthorityRoll]) -> str | None:
    """Returns which Secret or pod is behind with any authority, or None."""
    return next((roll.behind for roll in rolls if roll.behind is not None), None)


def loaded_at(rolls: Sequence[AuthorityRoll]) -> datetime | None:
    """Returns when all pods will have loaded the present state of all authorities. None while something is behind."""
    times = [roll.since for roll in rolls if roll.authority.is_rolling]
    known = [time for time in times if time is not None]
    return max(known) + TIME_TO_LOAD if known and len(known) == len(times) else None


def _write(cluster: ZooKeeperCluster, roll: AuthorityRoll, authority: Authority, why: str) -> SetAuthority:
    manifest = build_authority(cluster, roll.secret, authority_data(authority))
    # The version, since two reconciles of the same state would make two authorities.
    return SetAuthority({**manifest, "metadata": {**manifest["metadata"], "resourceVersion": roll.resource_version}}, why)


def _advance(roll: AuthorityRoll, loaded: datetime | None) -> tuple[Authority, str] | None:
    """Returns the next state of an authority that all Secrets have, and what that means; None while pods load it. See loaded_at."""
    authority = roll.authority
    match roll.change:
        case Begin(successor) | Replace(successor):
            # One that follows has signed nothing yet, so another one may take its place.
            begun = replace(authority, following=successor, everywhere_since=None)
            return begun, f"{succession(begun)}: it is created, and every server must trust both"
        case GiveUp():
            given_up = replace(authority, following=None, everywhere_since=None)
            return given_up, f"{succession(authority)} no more: its Secret has the one that signs"
        case Expired() | Outdated():
            return None
        case None:
            return _end_step(roll, loaded) if authority.is_rolling else None


def _end_step(roll: AuthorityRoll, loaded: datetime | None) -> tuple[Authority, str] | None:
    """Returns the next state of a roll that is under way, as above."""
    authority = roll.authority
    # One in the future is of an operator whose clock was ahead.
    if authority.everywhere_since is None or authority.everywhere_since > roll.now:
        noted, minutes = replace(authority, everywhere_since=roll.now), int(TIME_TO_LOAD.total_seconds() // 60)
        return noted, f"{succession(authority)}: this is in all Secrets, and pods get {minutes} minutes to load it"
    if loaded is None or roll.now < loaded:
        return None
    then = next_step(authority)
    if then.leaving is not None:
        return then, f"{succession(authority)}: it signs, and both are trusted"
    return then, f"{succession(authority)}: the old one is no longer {'to be ' if then.is_rolling else ''}trusted"


def replace_expired(ensemble: Ensemble) -> tuple[Action, ...]:
    """Returns the writes that replace expired authorities by others. Empty while members of a quorum with an expired one still serve."""
    if serves_by_old_connections(ensemble):
        return ()
    expired = [(roll, roll.change.successor) for roll in ensemble.rolls if isinstance(roll.change, Expired)]
    return tuple(
        _write(ensemble.cluster, roll, in_place_of(roll.authority, successor), takes_its_place(roll))
        for roll, successor in expired
        if successor is not None
    )


def serves_by_old_connections(ensemble: Ensemble) -> bool:
    """Returns whether a quorum whose authority has expired serves by old connections. The first member to restart would be refused."""
    expired = {roll.secret for roll in ensemble.rolls if isinstance(roll.change, Expired)}
    return len(ensemble.pods) > 1 and ensemble.named.quorum_authority_secret in expired and any(map(ensemble.serves, ensemble.pods))


def refusing_clients(ensemble: Ensemble) -> tuple[int, ...]:
    """Returns the members that serve and refuse clients: they don't trust the authority that signs, since they have not restarted since it
    took the place of one that had expired. In an ordinary third step they trust it since the first one. A pod that does not tell whom it
    trusts is not named.
    """
    clients = next((roll for roll in ensemble.rolls if roll.secret == ensemble.named.authority_secret), None)
    if clients is None or clients.authority.distrusted is None:
        return ()
    pods = {number: ensemble.objects.get("Pod", ensemble.named.pod(number)) for number in ensemble.pods if ensemble.serves(number)}
    trusted = {number: annotation(pod, names.TRUSTED_ANNOTATION) for number, pod in pods.items() if pod is not None}
    signing = fingerprints(clients.authority.signing.certificate)
    return tuple(number for number, told in trusted.items() if told is not None and not signing <= set(told.split()))


def _wait_again(roll: AuthorityRoll, why: str | None) -> tuple[Authority, str] | None:
    """Returns the state in which the wait for pods begins again. None if it had not begun, or nothing is behind."""
    authority = roll.authority
    if why is None or authority.everywhere_since is None:
        return None
    return replace(authority, everywhere_since=None), f"{succession(authority)}: the wait for pods starts again, since {why}"


def _answer(ensemble: Ensemble, *, settled: bool) -> tuple[AnswerRequest, ...]:
    cluster, rolls = ensemble.cluster, ensemble.rolls
    if names.ROLL_AUTHORITIES_ANNOTATION not in cluster.metadata.annotations:
        return ()
    if any(isinstance(roll.change, GiveUp) for roll in rolls):
        return ()  # once that roll is given up
    why_they_stay, past_first_step = _why_given_ones_stay(ensemble), _past_first_step(ensemble)
    begun = [roll for roll in rolls if roll.authority.is_rolling or (settled and isinstance(roll.change, Begin))]
    if not cluster.has_certificates:
        answer = "refused: spec.security.mode is Insecure, so there is no authority"
    elif past_first_step:
        # the one that signs may be why another is asked for: it stays
        answer = f"refused: {'. '.join(step_of(roll.authority) for roll in past_first_step)}; request it again once that has ended"
    elif rolls and len(begun) == len(rolls):
        begin = [f"{name_of(roll.signs_next.certificate)} takes over" for roll in rolls]
        answer = f"done: {' and '.join(begin)}{f'; {why_they_stay}' if why_they_stay else ''}"
    elif why_they_stay and not rolls:
        answer = f"refused: {why_they_stay}"
    else:
        return ()  # once the ensemble is settled
    return (AnswerRequest.on(cluster, Request.ROLL_AUTHORITIES, answer),)


def _why_given_ones_stay(ensemble: Ensemble) -> str:
    """Why no other authority follows those of the user's Secrets, and what to do; empty if there are none."""
    changing = {roll.secret for roll in ensemble.rolls}
    staying = [issuer for issuer in issuers(ensemble.cluster) if issuer.given_secret is not None and issuer.secret not in changing]
    why = [found.why for issuer in staying if isinstance(found := ensemble.given.get(issuer.secret), Unknown)]
    usable = [str(issuer.given_secret) for issuer in staying if not isinstance(ensemble.given.get(issuer.secret), Unknown)]
    if len(usable) == 1:
        why.append(f"the authority in the Secret {usable[0]} signs already: put another one there, and it takes over")
    elif usable:
        why.append(f"the authorities in the Secrets {' and '.join(usable)} sign already: put others there, and they take over")
    return ". ".join(why)
