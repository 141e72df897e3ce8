"""A certificate that lives for minutes, in the place of one of a stack's that lives for a year."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.x509.oid import NameOID

from herdkeeper.certificates.authority import RENEWED_AFTER, read_authority
from herdkeeper.certificates.holders import secret_data
from herdkeeper.certificates.issue import BACKDATED, Subject, Validity, fresh_key, issue


@dataclass(frozen=True)
class Span:
    """How long from now on a certificate is due to be renewed, and ends."""

    due: timedelta
    end: timedelta


def short_lived(held: Mapping[str, str], authority: Mapping[str, str], span: Span) -> dict[str, str]:
    """What the Secret has then: another certificate of the same subject and host names, by the same authority. `held` and `authority` are
    what is in the Secrets now. ValueError for what holds no certificate of the operator's."""
    certificate = x509.load_pem_x509_certificate(held["tls.crt"].encode())
    name, unit = (_one(certificate, oid) for oid in (NameOID.COMMON_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME))
    if name is None:
        raise ValueError("the certificate has no common name: the operator made no such one")
    signer, subject = read_authority("of the stack", authority), Subject(name, None if unit is None else unit.removeprefix("0:"))
    end = datetime.now(UTC) + span.end
    life = (span.end - span.due) / (1 - RENEWED_AFTER)
    begin = end - life + BACKDATED  # they are valid from before that on
    return secret_data(issue(signer.signing, subject, _hosts(certificate), fresh_key(), Validity(begin, end - begin)), signer)


def _one(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> str | None:
    found = certificate.subject.get_attributes_for_oid(oid)
    return str(found[0].value) if found else None


def _hosts(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return sorted(names.get_values_for_type(x509.DNSName))
