"""Plans how another authority takes over (docs/decisions/0106), one step at a time, each only when the one before is everywhere.

An authority that has expired is replaced at once: nobody accepts what it signed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.certificates.authority import Authority, authority_data, in_place_of, name_of, next_step, renewal_time
from herdkeeper.certificates.holders import fingerprints
from herdkeeper.certificates.issue import AUTHORITY_LIFE, KeyPair
from herdkeeper.planning.actions import Action, AnswerRequest, Request, SetAuthority
from herdkeeper.planning.summary import Health
from herdkeeper.shared import names
from herdkeeper.shared.conditions import AUTHORITIES_ROLLED
from herdkeeper.shared.objects import annotation
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import text_of
from herdkeeper.shared.unknown import NotThereYet, Unknown
from herdkeeper.zookeeper.build import build_authority
from herdkeeper.zookeeper.issuers import issuers
from herdkeeper.zookeeper.state import AuthorityRoll, Begin, Ensemble, Expired, GiveUp, Outdated, Replace

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
    behind = "the ensemble changes" if not settled else _behind(rolls)
    since = _since_when(rolls)
    # One that begins goes first, also if a Secret or pod is behind with the other one: the answer says that both begin.
    beginning = [roll for roll in rolls if isinstance(roll.change, Begin | Replace | GiveUp)] if settled else []
    going_on = beginning or (rolls if behind is None else ())
    steps = [(roll, _advance(roll, since) if roll in going_on else _wait_again(roll, behind)) for roll in rolls]
    written = (_write(ensemble.cluster, roll, *step) for roll, step in steps if step is not None)
    return (*written, *_answer(ensemble, settled=settled))


def _past_first_step(ensemble: Ensemble) -> list[AuthorityRoll]:
    """Returns the rolls in which the successor signs already."""
    return [roll for roll in ensemble.rolls if roll.authority.former is not None]


def _behind(rolls: Sequence[AuthorityRoll]) -> str | None:
    """Returns what is behind with any authority, or None."""
    return next((roll.behind for roll in rolls if roll.behind is not None), None)


def _since_when(rolls: Sequence[AuthorityRoll]) -> datetime | None:
    """Returns since when nothing is behind with any authority, or None."""
    times = [roll.since for roll in rolls if roll.authority.is_rolling]
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


def _write(cluster: ZooKeeperCluster, roll: AuthorityRoll, authority: Authority, why: str) -> SetAuthority:
    manifest = build_authority(cluster, roll.secret, authority_data(authority))
    # The version, since two reconciles of the same state would make two authorities.
    return SetAuthority({**manifest, "metadata": {**manifest["metadata"], "resourceVersion": roll.resource_version}}, why)


def _advance(roll: AuthorityRoll, since: datetime | None) -> tuple[Authority, str] | None:
    """Returns the next state of an authority whose present one is in all Secrets, and what that means. None: pods still load it."""
    authority = roll.authority
    match roll.change:
        case Begin(successor) | Replace(successor):
            # One that follows has signed nothing yet, so another one may take its place.
            begun = replace(authority, following=successor, everywhere_since=None)
            return begun, f"{_succession(begun)}: it is created, and every server must trust both"
        case GiveUp():
            given_up = replace(authority, following=None, everywhere_since=None)
            return given_up, f"{_succession(authority)} no more: its Secret has the one that signs"
        case Expired() | Outdated():
            return None
        case None:
            return _next(roll, since) if authority.is_rolling else None


def _next(roll: AuthorityRoll, since: datetime | None) -> tuple[Authority, str] | None:
    """Returns the next state of a roll that is under way, as above."""
    authority = roll.authority
    # One in the future is of an operator whose clock was ahead.
    if authority.everywhere_since is None or authority.everywhere_since > roll.now:
        noted = replace(authority, everywhere_since=roll.now)
        return noted, f"{_succession(authority)}: this is in all Secrets, and pods get {_minutes()} minutes to load it"
    if since is None or roll.now < since + TIME_TO_LOAD:
        return None
    then = next_step(authority)
    if then.leaving is not None:
        return then, f"{_succession(authority)}: it signs, and both are trusted"
    return then, f"{_succession(authority)}: the old one is no longer {'to be ' if then.is_rolling else ''}trusted"


def replace_expired(ensemble: Ensemble) -> tuple[Action, ...]:
    """Returns the writes that replace expired authorities by others. Empty while members of a quorum with an expired one still serve."""
    if _serves_by_old_connections(ensemble):
        return ()
    expired = [(roll, roll.change.successor) for roll in ensemble.rolls if isinstance(roll.change, Expired)]
    return tuple(
        _write(ensemble.cluster, roll, in_place_of(roll.authority, successor), _takes_its_place(roll))
        for roll, successor in expired
        if successor is not None
    )


def _serves_by_old_connections(ensemble: Ensemble) -> bool:
    """Whether members of a quorum whose authority has expired serve by connections from before. The first one to restart would be refused,
    whatever certificate it shows.
    """
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
    return replace(authority, everywhere_since=None), f"{_succession(authority)}: the wait for pods starts again, since {why}"


def _answer(ensemble: Ensemble, *, settled: bool) -> tuple[AnswerRequest, ...]:
    cluster, rolls, metadata = ensemble.cluster, ensemble.rolls, ensemble.cluster.metadata
    if names.ROLL_AUTHORITIES_ANNOTATION not in metadata.annotations:
        return ()
    if any(isinstance(roll.change, GiveUp) for roll in rolls):
        return ()  # once that roll is given up
    staying, past_first_step = _staying(ensemble), _past_first_step(ensemble)
    begun = [roll for roll in rolls if roll.authority.is_rolling or (settled and isinstance(roll.change, Begin))]
    if not cluster.has_certificates:
        answer = "refused: spec.security.mode is Insecure, so there is no authority"
    elif past_first_step:
        # the one that signs may be why another is asked for: it stays
        answer = f"refused: {'. '.join(_step(roll.authority) for roll in past_first_step)}; request it again once that has ended"
    elif rolls and len(begun) == len(rolls):
        stays = f"; {staying}" if staying else ""
        answer = f"done: {' and '.join(f'{name_of(_signs_next(roll).certificate)} takes over' for roll in rolls)}{stays}"
    elif staying and not rolls:
        answer = f"refused: {staying}"
    else:
        return ()  # once the ensemble is settled
    return (AnswerRequest(cluster.KIND, metadata.name, metadata.resource_version, Request.ROLL_AUTHORITIES, answer),)


def _staying(ensemble: Ensemble) -> str:
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


def authorities_rolled(ensemble: Ensemble) -> Mapping[str, Health]:
    """Returns the condition AuthoritiesRolled by its type. Empty if no authority is followed, or is to be followed, by another one."""
    unusable = [given for given in ensemble.given.values() if isinstance(given, Unknown)]
    rolls = [_described(ensemble, roll) for roll in ensemble.rolls]
    if unusable:
        awaited = all(isinstance(given, NotThereYet) for given in unusable)
        reason = Reason.WAITING_FOR_SECRET if awaited else Reason.INVALID_SECRET
        return {AUTHORITIES_ROLLED: Health("False", reason, ". ".join(dict.fromkeys((*(given.why for given in unusable), *rolls))))}
    return {AUTHORITIES_ROLLED: Health("False", Reason.AUTHORITY_ROLLING, ". ".join(rolls))} if rolls else {}


def _described(ensemble: Ensemble, roll: AuthorityRoll) -> str:
    """What happens to an authority next, and what it waits for."""
    if isinstance(roll.change, Outdated):
        return (
            f"{_expired(roll)}, but the Secret {roll.change.members_secret} has a valid certificate of another one: restore a later "
            f"{roll.secret} from a backup. If there is none, delete the Secret {roll.change.members_secret}: another authority then takes "
            "the place of this one, with an outage"
        )
    if isinstance(roll.change, Expired):
        if roll.change.successor is None:
            return f"{_expired(roll)}, and nothing can take its place yet"
        return f"{_takes_its_place(roll)}{_once_none_serves(ensemble) if _serves_by_old_connections(ensemble) else ''}"
    if roll.authority.is_rolling:
        refusing = _until_they_restart(ensemble, roll) if roll.secret == ensemble.named.authority_secret else ""
        return f"{_step(roll.authority)}; {_wait(ensemble.rolls)}{refusing}"
    return f"{_succession(replace(roll.authority, following=_signs_next(roll)))}: it begins once nothing else of the ensemble changes"


def _expired(roll: AuthorityRoll) -> str:
    return f"{name_of(roll.authority.signing.certificate)} expired at {text_of(roll.authority.expires)}"


def _takes_its_place(roll: AuthorityRoll) -> str:
    return f"{_expired(roll)}, and {name_of(_signs_next(roll).certificate)} takes its place"


def _once_none_serves(ensemble: Ensemble) -> str:
    return (
        " once no member serves: they serve by connections from before, and refuse one that restarts. "
        f"To {_have_it_now(list(map(ensemble.named.pod, ensemble.pods)))}"
    )


def _until_they_restart(ensemble: Ensemble, roll: AuthorityRoll) -> str:
    """Which members refuse clients, and what to do, while a member that does not serve holds up their restarts. Empty if there are none."""
    refusing = list(map(ensemble.named.pod, refusing_clients(ensemble)))
    away = [f"{ensemble.named.pod(number)}: {ensemble.trouble_of(number)}" for number in ensemble.pods if not ensemble.serves(number)]
    if not refusing or not away:
        return ""
    return (
        f". {' and '.join(refusing)} do not trust {name_of(roll.authority.signing.certificate)}, so they refuse clients until they "
        f"restart, and they restart only while all members serve ({'; '.join(away)}). Fix that or, to {_have_it_now(refusing)}"
    )


def _have_it_now(pods: list[str]) -> str:
    return f"have it now, at the cost of some minutes without ZooKeeper, delete their pods (kubectl delete pod {' '.join(pods)})"


def _step(authority: Authority) -> str:
    if authority.following is not None:
        step = "1 of 3, every server must trust both"
    elif authority.leaving is not None:
        step = "2 of 3, the new one signs and both are trusted"
    else:
        step = "3 of 3, no server must trust the old one any more"
    return f"{_succession(authority)}: step {step}"


def _wait(rolls: Sequence[AuthorityRoll]) -> str:
    """What all rolls wait for: they go on together."""
    behind, since = _behind(rolls), _since_when(rolls)
    if behind is not None:
        return f"it waits, since {behind}"
    if since is None:
        return "it waits until members have restarted with it, and nothing else of the ensemble changes"
    return f"all Secrets have it, and pods load it until {text_of(since + TIME_TO_LOAD)}"


def _succession(authority: Authority) -> str:
    """Which authority follows which, by name."""
    if authority.former is not None:
        return f"{name_of(authority.signing.certificate)} follows {name_of(authority.former)}"
    following = authority.signing if authority.following is None else authority.following
    return f"{name_of(following.certificate)} follows {name_of(authority.signing.certificate)}"


def _signs_next(roll: AuthorityRoll) -> KeyPair:
    """The authority that takes over, or else the one that goes on signing."""
    match roll.change:
        case Begin(successor) | Replace(successor):
            return successor
        case GiveUp() | Outdated():
            return roll.authority.signing
        case Expired(successor):
            return successor or roll.authority.signing
        case None:
            return roll.authority.following or roll.authority.signing


def _minutes() -> int:
    return int(TIME_TO_LOAD.total_seconds() // 60)
