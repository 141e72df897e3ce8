"""Judges whether the pair in a Secret can be a stack's authority: one that cert-manager issues (`isCA: true`), or that a person made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from herdkeeper.certificates.authority import TAKE_OVER_TIME, is_signed_by
from herdkeeper.certificates.issue import KeyPair, key_text, named_key, read_key
from herdkeeper.shared.names import CERTIFICATE_KEY, PRIVATE_KEY_KEY
from herdkeeper.shared.time import text_of

_UNREADABLE = (ValueError, UnsupportedAlgorithm, x509.DuplicateExtension, x509.InvalidVersion, x509.UnsupportedGeneralNameType)
_CHECKED = (x509.BasicConstraints, x509.KeyUsage, x509.ExtendedKeyUsage)
_SERVERS_AND_CLIENTS = {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}


def given_authority(values: Mapping[str, str], now: datetime) -> KeyPair:
    """Returns the pair in a Secret of the type kubernetes.io/tls, without the certificates of its own issuers.

    Raises ValueError with what is wrong and what to do, to be read after the Secret's name.
    """
    missing = [key for key in (CERTIFICATE_KEY, PRIVATE_KEY_KEY) if not values.get(key)]
    if missing:
        raise ValueError(f"lacks {' and '.join(missing)}: add it")
    try:
        certificate = x509.load_pem_x509_certificate(values[CERTIFICATE_KEY].encode())
        public, problem = certificate.public_key(), next(_lacking(certificate, now), None)
    except _UNREADABLE as error:
        raise ValueError(f"has no readable certificate in {CERTIFICATE_KEY} ({error}): write one in PEM") from error
    try:
        key = read_key(values[PRIVATE_KEY_KEY])
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"has no readable key in {PRIVATE_KEY_KEY} ({error}): write one in PEM without a password") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError(
            f"has a key in {PRIVATE_KEY_KEY} that is not of the curve P-256: make one (cert-manager: algorithm ECDSA, size 256)"
        )
    if public != key.public_key():
        raise ValueError(f"has a key in {PRIVATE_KEY_KEY} that is not that of {CERTIFICATE_KEY}: write both of one pair")
    if _as_java_reads(key.public_key()) not in certificate.tbs_certificate_bytes:
        problem = "has its key in a form that Java does not read: make one with a named curve and an uncompressed point"
    if problem is not None:
        raise ValueError(f"has a certificate in {CERTIFICATE_KEY} that {problem}")
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM).decode(), key_text(key))


def is_namesake(one: KeyPair, other: KeyPair) -> bool:
    """Whether two authorities have one subject, and not one key. No member can trust both: ZooKeeper knows them by subject."""
    first, second = (x509.load_pem_x509_certificate(each.certificate.encode()) for each in (one, other))
    # The key identifier, too: a process that knows one of two identifiers refuses certificates with the other.
    same_key = first.public_key() == second.public_key() and named_key(first) == named_key(second)
    return _folded(first.subject) == _folded(second.subject) and not same_key


def are_related(certificates: str, others: str) -> bool:
    """Returns whether two authorities share a key, or one has signed the other. A process that trusts one of them may then accept what the
    other one signs. Each argument has one certificate or several, in PEM.
    """
    first, second = (x509.load_pem_x509_certificates(each.encode()) for each in (certificates, others))
    pairs = [(one, other) for one in first for other in second]
    return any(one.public_key() == other.public_key() or is_signed_by(one, other) or is_signed_by(other, one) for one, other in pairs)


def _folded(subject: x509.Name) -> str:
    """A subject as names of entries in Java's key stores, and OpenSSL, compare it."""
    return " ".join(subject.rfc4514_string().casefold().split())


def _as_java_reads(key: ec.EllipticCurvePublicKey) -> bytes:
    """A key in DER, of a named curve."""
    written = ec.EllipticCurvePublicNumbers(key.public_numbers().x, key.public_numbers().y, ec.SECP256R1()).public_key()
    return written.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _lacking(certificate: x509.Certificate, now: datetime) -> Iterator[str]:
    """Yields what the certificate of an authority lacks, and what to do. Raises one of _UNREADABLE for damaged extensions."""
    extensions = {type(each.value): each.value for each in certificate.extensions}
    constraints, usage = extensions.get(x509.BasicConstraints), extensions.get(x509.KeyUsage)
    purposes = extensions.get(x509.ExtendedKeyUsage)
    if not isinstance(constraints, x509.BasicConstraints) or not constraints.ca:
        yield "is not one of an authority: make one that is (cert-manager: isCA: true)"
    if isinstance(usage, x509.KeyUsage) and not usage.key_cert_sign:
        yield "must not sign others: add that usage (cert-manager: usages: [cert sign])"
    if isinstance(purposes, x509.ExtendedKeyUsage) and not set(purposes) >= _SERVERS_AND_CLIENTS:
        yield "is not for servers and clients: leave extended usages out, or name both"
    if x509.NameConstraints in extensions:
        yield "constrains names, which not all servers check alike: make one without name constraints"
    if not certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME):
        yield "has no common name, by which it differs from the next one: set one (cert-manager: commonName)"
    if critical := [each.oid.dotted_string for each in certificate.extensions if each.critical and type(each.value) not in _CHECKED]:
        yield f"has critical extensions that not all servers check ({', '.join(critical)}): make one without them"
    if not certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - TAKE_OVER_TIME:
        begin, end = text_of(certificate.not_valid_before_utc), text_of(certificate.not_valid_after_utc)
        yield f"is valid from {begin} to {end}, and must be valid now and for another day: renew it"
