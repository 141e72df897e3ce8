"""Derives the condition AuthoritiesRolled: what happens to authorities, and what that waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from herdkeeper.certificates.authority import name_of
from herdkeeper.planning.summary import Health
from herdkeeper.shared.conditions import AUTHORITIES_ROLLED
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import text_of
from herdkeeper.shared.unknown import NotThereYet, Unknown
from herdkeeper.zookeeper.authority_roll import loaded_at, refusing_clients, serves_by_old_connections, what_is_behind
from herdkeeper.zookeeper.authority_state import AuthorityRoll, Expired, Outdated
from herdkeeper.zookeeper.authority_words import expiry, have_it_now, once_none_serves, step_of, succession, takes_its_place
from herdkeeper.zookeeper.state import Ensemble


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
            f"{expiry(roll)}, but the Secret {roll.change.members_secret} has a valid certificate of another one: restore a later "
            f"{roll.secret} from a backup. If there is none, delete the Secret {roll.change.members_secret}: another authority then takes "
            "the place of this one, with an outage"
        )
    if isinstance(roll.change, Expired):
        if roll.change.successor is None:
            return f"{expiry(roll)}, and nothing can take its place yet"
        waits = f" {once_none_serves(map(ensemble.named.pod, ensemble.pods))}" if serves_by_old_connections(ensemble) else ""
        return f"{takes_its_place(roll)}{waits}"
    if roll.authority.is_rolling:
        refusing = _until_they_restart(ensemble, roll) if roll.secret == ensemble.named.authority_secret else ""
        return f"{step_of(roll.authority)}; {_wait(ensemble.rolls)}{refusing}"
    return f"{succession(replace(roll.authority, following=roll.signs_next))}: it begins once nothing else of the ensemble changes"


def _until_they_restart(ensemble: Ensemble, roll: AuthorityRoll) -> str:
    """Which members refuse clients, and what to do, while a member that does not serve holds up their restarts. Empty if there are none."""
    refusing = list(map(ensemble.named.pod, refusing_clients(ensemble)))
    away = [f"{ensemble.named.pod(number)}: {ensemble.trouble_of(number)}" for number in ensemble.pods if not ensemble.serves(number)]
    if not refusing or not away:
        return ""
    return (
        f". {' and '.join(refusing)} do not trust {name_of(roll.authority.signing.certificate)}, so they refuse clients until they "
        f"restart, and they restart only while all members serve ({'; '.join(away)}). Fix that or, to {have_it_now(refusing)}"
    )


def _wait(rolls: Sequence[AuthorityRoll]) -> str:
    """What all rolls wait for: they go on together."""
    behind, loaded = what_is_behind(rolls), loaded_at(rolls)
    if behind is not None:
        return f"it waits, since {behind}"
    if loaded is None:
        return "it waits until members have restarted with it, and nothing else of the ensemble changes"
    return f"all Secrets have it, and pods load it until {text_of(loaded)}"
