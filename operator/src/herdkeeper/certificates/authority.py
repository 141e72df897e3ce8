"""A stack's authority, as its Secret keeps it, and when a certificate that it signed is made anew.

Its generation is part of its name: ZooKeeper keeps those that it trusts by their names, so that one that follows it must have another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from herdkeeper.certificates.issue import KeyPair, Subject, Validity, make_authority

RENEWED_AFTER = 2 / 3
"""Of a certificate's life."""
_GENERATION, _CERTIFICATE, _KEY = "generation", "signing.crt", "signing.key"
"""Of the Secret."""


@dataclass(frozen=True)
class Authority:
    """Who signs the certificates of a stack."""

    name: str
    generation: int
    signing: KeyPair

    @property
    def trusted(self) -> str:
        """The certificate that everybody is to trust, in PEM."""
        return self.signing.certificate


class Renewal(StrEnum):
    """Why a certificate is made anew."""

    MISSING = "there is none, or it is damaged"
    AGE = "two thirds of its life are over"
    AUTHORITY = "another authority signs now"
    HOSTS = "it is not for the same host names"
    SUBJECT = "it is for somebody else"


def found_authority(name: str, key: str, validity: Validity) -> Authority:
    """The first one of a stack."""
    return Authority(name, 1, make_authority(f"{name} 1", key, validity))


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
    return {_GENERATION: str(authority.generation), _CERTIFICATE: authority.signing.certificate, _KEY: authority.signing.key}


def read_authority(name: str, data: Mapping[str, str]) -> Authority:
    """What the Secret keeps. Raises ValueError, which names the key that is missing or damaged: one that can't be read is never replaced by
    another one, which nobody trusts."""
    certificate, key, number = (data.get(each, "") for each in (_CERTIFICATE, _KEY, _GENERATION))
    if not certificate or not key:
        raise ValueError(f"{_CERTIFICATE} or {_KEY} is missing")
    if not number.isdecimal():
        raise ValueError(f"{_GENERATION} is {number!r}, expected a number")
    try:
        x509.load_pem_x509_certificate(certificate.encode())
    except ValueError as error:
        raise ValueError(f"{_CERTIFICATE} is no certificate in PEM: {error}") from error
    return Authority(name, int(number), KeyPair(certificate, key))


def _hosts(certificate: x509.Certificate) -> frozenset[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(names.get_values_for_type(x509.DNSName))
