"""Whose certificates a stack has, and what their Secrets shall hold now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from herdkeeper.certificates.authority import Authority, renewal_time, why_renew
from herdkeeper.certificates.issue import KeyPair, Subject, Validity, is_pair, issue
from herdkeeper.certificates.settings import KEY_STORE_KEY
from herdkeeper.shared import names


@dataclass(frozen=True)
class Holder:
    """Who has a certificate, in the Secret of this name, and under which host names it serves."""

    secret: str
    subject: Subject
    hosts: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Change:
    """A Secret that is to be written; `new` where there is none."""

    holder: Holder
    data: Mapping[str, str]
    new: bool


@dataclass(frozen=True)
class DueSecrets:
    """The Secrets of a resource that are to be written, why one can't be (None: nothing is in the way), and in how many seconds the next
    certificate is due (None: it has none)."""

    changes: tuple[Change, ...] = ()
    obstacle: str | None = None
    next_seconds: float | None = None


NOTHING_DUE = DueSecrets()


def due_secrets(
    holders: Sequence[Holder], held: Mapping[str, Mapping[str, str]], authority: Authority, fresh_key: Callable[[], str], validity: Validity
) -> DueSecrets:
    """The same as `due_changes`, and when the next one is due."""
    changes = due_changes(holders, held, authority, fresh_key, validity)
    written = {change.holder.secret: change.data for change in changes}
    certificates = [(written.get(holder.secret) or held[holder.secret])[names.CERTIFICATE_KEY] for holder in holders]
    seconds = ((renewal_time(certificate) - validity.now).total_seconds() for certificate in certificates)
    return DueSecrets(changes, next_seconds=max(0.0, min(seconds)))


def due_changes(
    holders: Iterable[Holder], held: Mapping[str, Mapping[str, str]], authority: Authority, fresh_key: Callable[[], str], validity: Validity
) -> tuple[Change, ...]:
    """The Secrets that are not as they shall be. `held` is what is in those that are there; one that could not be read must not be left
    out: its certificate would be made anew."""
    changes = []
    for holder in holders:
        there = held.get(holder.secret, {})
        certificate, key = there.get(names.CERTIFICATE_KEY), there.get(names.PRIVATE_KEY_KEY)
        whole = certificate and key and is_pair(certificate, key)
        renewal = why_renew(certificate if whole else None, authority, holder.subject, holder.hosts, validity.now)
        if certificate and key and renewal is None:
            pair = KeyPair(certificate, key)
        else:
            pair = issue(authority.signing, holder.subject, sorted(holder.hosts), fresh_key(), validity)
        data = secret_data(pair, authority)
        if data != {name: there.get(name) for name in data}:
            changes.append(Change(holder, data, new=holder.secret not in held))
    return tuple(changes)


def secret_data(pair: KeyPair, authority: Authority) -> dict[str, str]:
    """What a holder mounts."""
    return {
        names.CERTIFICATE_KEY: pair.certificate,
        names.PRIVATE_KEY_KEY: pair.key,
        KEY_STORE_KEY: f"{pair.key}{pair.certificate}",
        names.AUTHORITIES_KEY: authority.trusted,
    }
