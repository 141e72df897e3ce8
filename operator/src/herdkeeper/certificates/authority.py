"""A stack's authority, as in its Secret, and when its certificates are renewed.

Its generation is part of its name: ZooKeeper keeps trusted authorities by name, so a successor needs another one.

A successor takes over in three steps, so that no process meets a certificate that it does not trust (docs/decisions/0106). First it is
trusted beside the old one (`following`). Then it signs, and the old one is still trusted (`leaving`). In the third step the old one is no
longer trusted (`distrusted`). Callers begin a step, and end the last one, only when all processes have the state before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from herdkeeper.certificates.issue import CERTIFICATE_LIFE, KeyPair, Subject, Validity, is_pair, make_authority, named_key
from herdkeeper.shared.time import moment_of, text_of

RENEWED_AFTER = 2 / 3
"""Share of a certificate's lifetime."""
TAKE_OVER_TIME = timedelta(days=1)
"""What an authority must have left to follow another one: if it expires while it takes over, all servers refuse each other."""
_GENERATION, _SIGNING, _FOLLOWING, _EVERYWHERE = "generation", "signing", "following", "everywhere-since"
_LEAVING, _DISTRUSTED = "leaving.crt", "distrusted.crt"
"""Keys of the Secret; those of pairs without their ending."""
AUTHORITY_ENTRIES = (
    _GENERATION,
    *(f"{role}.{ending}" for role in (_SIGNING, _FOLLOWING) for ending in ("crt", "key")),
    _LEAVING,
    _DISTRUSTED,
    _EVERYWHERE,
)
"""All keys that the Secret can have."""


@dataclass(frozen=True)
class Authority:
    """The issuer of a stack's certificates. `generation` counts those that signed.

    `following` is trusted already and signs nothing yet. `leaving` (PEM) is still trusted and signs nothing any more. `distrusted` (PEM) is
    trusted only by those who lack this state. `everywhere_since`: since when all holders have had this state; None: not yet, or nothing
    changes.
    """

    name: str
    generation: int
    signing: KeyPair
    following: KeyPair | None = None
    leaving: str | None = None
    distrusted: str | None = None
    everywhere_since: datetime | None = None

    @property
    def trusted(self) -> str:
        """The certificates that all holders trust, in PEM. The oldest is first: the second step of a roll then changes no text."""
        return f"{self.leaving or ''}{self.signing.certificate}{'' if self.following is None else self.following.certificate}"

    @property
    def expires(self) -> datetime:
        """When the one that signs expires."""
        return expiry_of(self.signing.certificate)

    @property
    def is_rolling(self) -> bool:
        """Whether a successor takes over."""
        return self.following is not None or self.former is not None

    @property
    def former(self) -> str | None:
        """The certificate of the one that signed before, until a roll has ended."""
        return self.leaving or self.distrusted


class RenewalReason(StrEnum):
    MISSING = "it or its key is missing or damaged"
    AGE = "two thirds of its life are over"
    AUTHORITY = "another authority now signs"
    HOSTS = "it is not for the same host names"
    SUBJECT = "it is for another holder"


def first_authority(name: str, key: str, validity: Validity) -> Authority:
    return Authority(name, 1, make_authority(f"{name} 1", key, validity))


def successor_of(authority: Authority, name: str, key: str, validity: Validity) -> KeyPair:
    """Returns a new authority that may follow this one. `name` is the stack's, with what the authority is for."""
    made = f"{name} {authority.generation + 1}"
    # An authority of the user's may have that name already.
    return make_authority(f"{made} again" if made == name_of(authority.signing.certificate) else made, key, validity)


def name_of(certificate: str) -> str:
    """Returns the common name in an authority's certificate (PEM): the stack's name, what it is for, and the generation."""
    names = x509.load_pem_x509_certificate(certificate.encode()).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return " ".join(str(each.value) for each in names)


def next_step(authority: Authority) -> Authority:
    """Returns the state after the present step of a roll. Raises ValueError if none is under way."""
    if authority.distrusted is not None:
        return replace(authority, distrusted=None, everywhere_since=None)
    if authority.leaving is not None:
        return replace(authority, leaving=None, distrusted=authority.leaving, everywhere_since=None)
    if authority.following is None:
        raise ValueError(f"nothing follows {name_of(authority.signing.certificate)}")
    return Authority(authority.name, authority.generation + 1, authority.following, leaving=authority.signing.certificate)


def in_place_of(expired: Authority, successor: KeyPair) -> Authority:
    """Returns the state of the last step at once, for an authority that has expired: nobody accepts what it signed, so no process needs to
    trust both. The successor may be one that signed before.
    """
    distrusted = f"{expired.signing.certificate}{expired.former or ''}".replace(successor.certificate, "")
    return Authority(expired.name, expired.generation + 1, successor, distrusted=distrusted)


def why_renew(held: KeyPair, authority: Authority, subject: Subject, hosts: frozenset[str], now: datetime) -> RenewalReason | None:
    """Returns why a holder's certificate is renewed, or None."""
    if not is_pair(held.certificate, held.key):
        return RenewalReason.MISSING
    certificate = x509.load_pem_x509_certificate(held.certificate.encode())
    signer = x509.load_pem_x509_certificate(authority.signing.certificate.encode())
    if not is_signed_by(certificate, signer):
        return RenewalReason.AUTHORITY
    if certificate.subject != subject.x500:
        return RenewalReason.SUBJECT
    if _hosts(certificate) != hosts:
        return RenewalReason.HOSTS
    # One that expires with the authority is not renewed: the next one would be due at once, and each restarts members.
    is_due = now >= renewal_time(held.certificate, CERTIFICATE_LIFE) and not expires_with(held.certificate, authority)
    return RenewalReason.AGE if is_due else None


def expires_with(certificate: str, authority: Authority) -> bool:
    """Returns whether a certificate (PEM) expires with its authority, which can sign none that expires later."""
    return expiry_of(certificate) >= authority.expires


def is_signed_by(certificate: x509.Certificate, signer: x509.Certificate) -> bool:
    """Returns whether a certificate names this signer, and its key as the signer does, and has its signature."""
    try:
        certificate.verify_directly_issued_by(signer)
        named = certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
    except x509.ExtensionNotFound:
        return True
    except (InvalidSignature, TypeError, ValueError):  # by key, by kind of key, or by name
        return False
    return named is None or named_key(signer) in (None, named)


def renewal_time(certificate: str, life: timedelta) -> datetime:
    """Returns when two thirds of a certificate's lifetime are over: of `life`, or of its own if shorter. Raises ValueError."""
    loaded = x509.load_pem_x509_certificate(certificate.encode())
    end: datetime = loaded.not_valid_after_utc
    return end - min(life, end - loaded.not_valid_before_utc) * (1 - RENEWED_AFTER)


def expiry_of(certificate: str) -> datetime:
    """Returns when a certificate (PEM) expires. Raises ValueError for an invalid one."""
    end: datetime = x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc
    return end


def expires_too_soon(successor: KeyPair, now: datetime) -> bool:
    """Returns whether an authority expires before it could take over."""
    return now >= expiry_of(successor.certificate) - TAKE_OVER_TIME


def authority_data(authority: Authority) -> dict[str, str]:
    """Returns the content of its Secret."""
    pairs = {_SIGNING: authority.signing, _FOLLOWING: authority.following}
    since = authority.everywhere_since
    return {
        _GENERATION: str(authority.generation),
        **{
            f"{role}.{ending}": text
            for role, pair in pairs.items()
            if pair is not None
            for ending, text in (("crt", pair.certificate), ("key", pair.key))
        },
        **({_LEAVING: authority.leaving} if authority.leaving is not None else {}),
        **({_DISTRUSTED: authority.distrusted} if authority.distrusted is not None else {}),
        **({_EVERYWHERE: text_of(since)} if since is not None else {}),
    }


def read_authority(name: str, data: Mapping[str, str]) -> Authority:
    """Returns the authority in a Secret. Raises ValueError naming a missing or damaged key: nothing replaces what can't be read."""
    signing, following, number = _pair(_SIGNING, data), _pair(_FOLLOWING, data), data.get(_GENERATION, "")
    if signing is None:
        raise ValueError(f"{_SIGNING}.crt or {_SIGNING}.key is missing")
    if not number.isdecimal():
        raise ValueError(f"{_GENERATION} is {number!r}, expected a number")
    leaving, distrusted = data.get(_LEAVING), data.get(_DISTRUSTED)
    for what, former in ((_LEAVING, leaving), (_DISTRUSTED, distrusted)):
        if former is not None:
            _require_certificate(what, former)
    if leaving is not None and following is not None:
        raise ValueError(f"{_LEAVING} and {_FOLLOWING}.crt both exist")
    return Authority(name, int(number), signing, following, leaving, distrusted, moment_of(data.get(_EVERYWHERE)))


def _pair(role: str, data: Mapping[str, str]) -> KeyPair | None:
    certificate, key = data.get(f"{role}.crt", ""), data.get(f"{role}.key", "")
    if not certificate and not key:
        return None
    if not certificate or not key:
        raise ValueError(f"{role}.crt or {role}.key is missing")
    _require_certificate(f"{role}.crt", certificate)
    if not is_pair(certificate, key):
        raise ValueError(f"{role}.key is not the key of {role}.crt")
    return KeyPair(certificate, key)


def _require_certificate(what: str, certificate: str) -> None:
    try:
        x509.load_pem_x509_certificate(certificate.encode())
    except ValueError as error:
        raise ValueError(f"{what} is no certificate in PEM: {error}") from error


def _hosts(certificate: x509.Certificate) -> frozenset[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(names.get_values_for_type(x509.DNSName))
