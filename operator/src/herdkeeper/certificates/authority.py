"""A stack's authority, as in its Secret, and when its certificates are renewed.

Its generation is part of its name: ZooKeeper keeps trusted authorities by name, so a successor needs another one.
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
"""Share of a certificate's lifetime."""
_GENERATION, _CERTIFICATE, _KEY = "generation", "signing.crt", "signing.key"
"""Keys of the Secret."""


@dataclass(frozen=True)
class Authority:
    """The issuer of a stack's certificates."""

    name: str
    generation: int
    signing: KeyPair

    @property
    def trusted(self) -> str:
        """The certificate for everybody to trust, in PEM."""
        return self.signing.certificate


class Renewal(StrEnum):
    """Why a certificate is renewed."""

    MISSING = "it is missing or damaged"
    AGE = "two thirds of its life are over"
    AUTHORITY = "another authority now signs"
    HOSTS = "it is not for the same host names"
    SUBJECT = "it is for another holder"


def found_authority(name: str, key: str, validity: Validity) -> Authority:
    """Returns the first authority of a stack."""
    return Authority(name, 1, make_authority(f"{name} 1", key, validity))


def why_renew(held: str | None, authority: Authority, subject: Subject, hosts: frozenset[str], now: datetime) -> Renewal | None:
    """Returns why a holder's certificate is renewed, or None."""
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
    """Returns when two thirds of a certificate's lifetime are over. Raises ValueError for an invalid one."""
    loaded = x509.load_pem_x509_certificate(certificate.encode())
    life: timedelta = loaded.not_valid_after_utc - loaded.not_valid_before_utc
    return loaded.not_valid_before_utc + life * RENEWED_AFTER


def expiry_of(authority: Authority) -> datetime:
    """Returns when the authority expires."""
    expires: datetime = x509.load_pem_x509_certificate(authority.signing.certificate.encode()).not_valid_after_utc
    return expires


def authority_data(authority: Authority) -> dict[str, str]:
    """Returns the content of its Secret."""
    return {_GENERATION: str(authority.generation), _CERTIFICATE: authority.signing.certificate, _KEY: authority.signing.key}


def read_authority(name: str, data: Mapping[str, str]) -> Authority:
    """Returns the authority in a Secret. Raises ValueError naming a missing or damaged key: an unreadable authority is never replaced by
    one that nobody trusts.
    """
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
