"""The certificate holders of a stack, and the intended content of their Secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from herdkeeper.certificates.authority import Authority, expires_with, is_signed_by, renewal_time, why_renew
from herdkeeper.certificates.issue import CERTIFICATE_LIFE, KeyPair, Subject, Validity, issue
from herdkeeper.certificates.settings import KEY_STORE_KEY
from herdkeeper.shared import names
from herdkeeper.shared.time import text_of


@dataclass(frozen=True)
class Holder:
    """The holder of a certificate: its Secret, and the host names under which it serves."""

    secret: str
    subject: Subject
    hosts: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Change:
    """A Secret to write; `new` if it does not exist."""

    holder: Holder
    data: Mapping[str, str]
    new: bool


@dataclass(frozen=True)
class DueSecrets:
    """Secrets to write. `obstacle`: why one can't be, or None. `next_seconds`: until the next renewal; None if there will be none."""

    changes: tuple[Change, ...] = ()
    obstacle: str | None = None
    next_seconds: float | None = None


NOTHING_DUE = DueSecrets()


def due_secrets(
    holders: Sequence[Holder], held: Mapping[str, Mapping[str, str]], authority: Authority, fresh_key: Callable[[], str], validity: Validity
) -> DueSecrets:
    """Like `due_changes`, with the time of the next renewal. An authority that has expired signs nothing."""
    if validity.now >= (end := authority.expires):
        return DueSecrets(
            obstacle=f"the authority in the Secret {authority.name} expired at {text_of(end)}, and servers refuse what it has signed: "
            "the condition AuthoritiesRolled of the ZooKeeperCluster shows what takes its place, or what is missing"
        )
    changes = due_changes(holders, held, authority, fresh_key, validity)
    written = {change.holder.secret: change.data for change in changes}
    certificates = [(written.get(holder.secret) or held[holder.secret])[names.CERTIFICATE_KEY] for holder in holders]
    times = [renewal_time(each, CERTIFICATE_LIFE) for each in certificates if not expires_with(each, authority)]
    return DueSecrets(changes, next_seconds=max(0.0, (min(times) - validity.now).total_seconds()) if times else None)


def due_changes(
    holders: Iterable[Holder], held: Mapping[str, Mapping[str, str]], authority: Authority, fresh_key: Callable[[], str], validity: Validity
) -> tuple[Change, ...]:
    """Returns the Secrets that differ from their intent. One that `held`, the existing contents by name, lacks gets a new certificate."""
    changes = []
    for holder in holders:
        there = held.get(holder.secret, {})
        pair = KeyPair(there.get(names.CERTIFICATE_KEY, ""), there.get(names.PRIVATE_KEY_KEY, ""))
        if why_renew(pair, authority, holder.subject, holder.hosts, validity.now) is not None:
            pair = issue(authority.signing, holder.subject, sorted(holder.hosts), fresh_key(), validity)
        data = secret_data(pair, authority)
        if data != {name: there.get(name) for name in data}:
            changes.append(Change(holder, data, new=holder.secret not in held))
    return tuple(changes)


def holds(data: Mapping[str, str], authority: Authority) -> bool:
    """Returns whether a Secret has anything of this authority, or of the one before: its `ca.crt` has one of them, or one of them signed
    its certificate. True, too, if the operator made the Secret and one of these can't be read.
    """
    authorities = _certificates(authority.trusted + (authority.distrusted or ""))
    trusted, shown = _certificates(data.get(names.AUTHORITIES_KEY, "")), _certificates(data.get(names.CERTIFICATE_KEY, ""))
    if KEY_STORE_KEY in data and not (trusted and shown):
        return True
    return bool(authorities & trusted) or any(is_signed_by(each, signer) for each in shown for signer in authorities)


def is_of_another(data: Mapping[str, str], authority: Authority, now: datetime) -> bool:
    """Returns whether a Secret has a certificate that is still valid, and nothing of this authority."""
    shown = _certificates(data.get(names.CERTIFICATE_KEY, ""))
    return any(now < each.not_valid_after_utc for each in shown) and not holds(data, authority)


def is_behind(data: Mapping[str, str], authority: Authority) -> bool:
    """Returns whether a Secret with something of an authority lacks its present state. It lacks it if one of these holds: it doesn't trust
    all that are trusted, it still trusts the distrusted one, or another authority signed its certificate.
    """
    trusted, shown = _certificates(data.get(names.AUTHORITIES_KEY, "")), _certificates(data.get(names.CERTIFICATE_KEY, ""))
    if not _certificates(authority.trusted) <= trusted or _certificates(authority.distrusted or "") & trusted:
        return True
    unsigned = KEY_STORE_KEY in data and not shown
    signer = x509.load_pem_x509_certificate(authority.signing.certificate.encode())
    return unsigned or not all(is_signed_by(each, signer) for each in shown)


def fingerprints(certificates: str) -> frozenset[str]:
    """Returns the SHA-256 of each certificate in PEM text, in hexadecimal. Empty if it has none, or can't be read."""
    return frozenset(each.fingerprint(hashes.SHA256()).hex() for each in _certificates(certificates))


def _certificates(text: str) -> frozenset[x509.Certificate]:
    """Returns the certificates in PEM text. Empty if it has none, or can't be read."""
    try:
        return frozenset(x509.load_pem_x509_certificates(text.encode()))
    except ValueError:
        return frozenset()


def secret_data(pair: KeyPair, authority: Authority) -> dict[str, str]:
    """Returns the data that a holder mounts."""
    return {
        names.CERTIFICATE_KEY: pair.certificate,
        names.PRIVATE_KEY_KEY: pair.key,
        KEY_STORE_KEY: f"{pair.key}{pair.certificate}",
        names.AUTHORITIES_KEY: authority.trusted,
    }
