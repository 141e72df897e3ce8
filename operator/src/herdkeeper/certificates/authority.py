"""A stack's authority over time: it is followed by another one in two phases, in which nobody meets somebody whom he does not trust.

While there is a next one, everybody is to trust it beside the one that signs. Once everybody does, it signs, and the one before stays
trusted until nobody has a certificate of it any more. What everybody trusts and has is observed by whoever asks here; a step that can't be
told to be safe is not taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from herdkeeper.certificates.issue import KeyPair, Subject, Validity, make_authority

RENEWED_AFTER = 2 / 3
"""Of a certificate's life."""
_GENERATION = "generation"


@dataclass(frozen=True)
class Authority:
    """`generation` counts the ones that signed. `following` is trusted already and signs nothing yet; `leaving` is trusted still."""

    name: str
    generation: int
    signing: KeyPair
    following: KeyPair | None = None
    leaving: str | None = None

    @property
    def trusted(self) -> str:
        """The certificates of all whom everybody is to trust, in PEM."""
        following = "" if self.following is None else self.following.certificate
        return f"{self.signing.certificate}{following}{self.leaving or ''}"


@dataclass(frozen=True)
class Reach:
    """How far the authority's state has come in the stack. False also where that can't be told."""

    trusted_everywhere: bool
    """Whether every process that verifies others trusts all of `Authority.trusted`."""
    leaving_unused: bool
    """Whether no process shows a certificate any more that the leaving one has signed."""


class Renewal(StrEnum):
    """Why a certificate is made anew."""

    MISSING = "there is none, or it is damaged"
    AGE = "two thirds of its life are over"
    AUTHORITY = "another authority signs now"
    HOSTS = "it is not for the same host names"
    SUBJECT = "it is for somebody else"


def found_authority(name: str, key: str, validity: Validity) -> Authority:
    """The first one of a stack."""
    return Authority(name, 1, make_authority(_subject(name, 1), key, validity))


def next_state(authority: Authority, reach: Reach, fresh_key: Callable[[], str], validity: Validity) -> Authority:
    """What the authority is to be now: the same, or one step on. `fresh_key` is asked only for a new one."""
    if authority.leaving is not None:
        return replace(authority, leaving=None) if reach.leaving_unused else authority
    if authority.following is not None:
        if not reach.trusted_everywhere:
            return authority
        return Authority(authority.name, authority.generation + 1, authority.following, leaving=authority.signing.certificate)
    if validity.now < renewal_time(authority.signing.certificate):
        return authority
    following = make_authority(_subject(authority.name, authority.generation + 1), fresh_key(), validity)
    return replace(authority, following=following)


def why_renew(held: str | None, authority: Authority, subject: Subject, hosts: frozenset[str], now: datetime) -> Renewal | None:
    """Why the certificate that somebody holds is made anew; None when it stays."""
    try:
        certificate = None if held is None else x509.load_pem_x509_certificate(held.encode())
    except ValueError:
        certificate = None
    if certificate is None or held is None:
        return Renewal.MISSING
    signer = x509.load_pem_x509_certificate(authority.signing.certificate.encode())
    try:
        certificate.verify_directly_issued_by(signer)
    except (InvalidSignature, TypeError, ValueError):  # by name, by kind of key, or by key
        return Renewal.AUTHORITY
    if certificate.subject != subject.x500:
        return Renewal.SUBJECT
    if _hosts(certificate) != hosts:
        return Renewal.HOSTS
    return Renewal.AGE if now >= renewal_time(held) else None


def renewal_time(certificate: str) -> datetime:
    """When two thirds of a certificate's life are over. Raises ValueError for what is none."""
    loaded = x509.load_pem_x509_certificate(certificate.encode())
    life: timedelta = loaded.not_valid_after_utc - loaded.not_valid_before_utc
    return loaded.not_valid_before_utc + life * RENEWED_AFTER


def expiry_of(authority: Authority) -> datetime:
    """When the one that signs expires."""
    expires: datetime = x509.load_pem_x509_certificate(authority.signing.certificate.encode()).not_valid_after_utc
    return expires


def authority_data(authority: Authority) -> dict[str, str]:
    """The content of the Secret that keeps it."""
    data = {_GENERATION: str(authority.generation), "signing.crt": authority.signing.certificate, "signing.key": authority.signing.key}
    if authority.following is not None:
        data |= {"following.crt": authority.following.certificate, "following.key": authority.following.key}
    return data if authority.leaving is None else {**data, "leaving.crt": authority.leaving}


def read_authority(name: str, data: Mapping[str, str]) -> Authority:
    """What the Secret keeps. Raises ValueError, which names the key that is missing or damaged: one that can't be read is never replaced by
    another one, which nobody trusts."""
    pairs = {}
    for role in ("signing", "following"):
        certificate, key = data.get(f"{role}.crt"), data.get(f"{role}.key")
        if certificate and key:
            pairs[role] = KeyPair(_whole(f"{role}.crt", certificate), key)
        elif certificate or key or role == "signing":
            raise ValueError(f"{role}.crt or {role}.key is missing")
    number = data.get(_GENERATION, "")
    if not number.isdecimal():
        raise ValueError(f"{_GENERATION} is {number!r}, expected a number")
    leaving = data.get("leaving.crt")
    return Authority(
        name, int(number), pairs["signing"], pairs.get("following"), None if leaving is None else _whole("leaving.crt", leaving)
    )


def _whole(key: str, certificate: str) -> str:
    try:
        x509.load_pem_x509_certificate(certificate.encode())
    except ValueError as error:
        raise ValueError(f"{key} is no certificate in PEM: {error}") from error
    return certificate


def _subject(name: str, generation: int) -> str:
    return f"{name} {generation}"


def _hosts(certificate: x509.Certificate) -> frozenset[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(names.get_values_for_type(x509.DNSName))
