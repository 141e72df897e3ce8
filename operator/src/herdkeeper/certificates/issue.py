"""Makes X.509 certificates (RFC 5280) for ZooKeeper, BookKeeper and HerdDB.

Keys are of the curve P-256, in PEM and PKCS#8 (as Java's PEM readers expect). Each authority has its own subject: ZooKeeper keeps trusted
authorities by subject, so of two with the same one only the last counts (PemReader, 3.9.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CERTIFICATE_LIFE = timedelta(days=365)
AUTHORITY_LIFE = timedelta(days=3650)
LONGEST_KEY = 2048
"""Characters of a key of a curve in PEM, with room for others. A key of another kind can have numbers that take one thread hours."""
BACKDATED = timedelta(days=365)
"""A certificate is valid from this long before it is made, since the operator's clock may be ahead, or another process's behind. A year is
enough: an operator whose clock is further ahead mostly refuses the API server's certificate, and does nothing.
"""


@dataclass(frozen=True)
class KeyPair:
    """A certificate with its key, each in PEM."""

    certificate: str
    key: str = field(repr=False)


@dataclass(frozen=True)
class Subject:
    """The owner of a certificate. ZooKeeper's ACLs compare it whole, so it has nothing that changes at a renewal.

    `may_use` is the BookKeeperCluster whose bookies admit the owner: BookKeeper reads it as a role (CertUtils, 4.18: `0:` before it).
    """

    name: str
    may_use: str | None = None

    @property
    def x500(self) -> x509.Name:
        """The name in the certificate."""
        unit = [] if self.may_use is None else [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, f"0:{self.may_use}")]
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name), *unit])


@dataclass(frozen=True)
class Validity:
    """When a certificate is made, and how long it is valid from then on."""

    now: datetime
    life: timedelta


def fresh_key() -> str:
    """Returns a new private key, in PEM."""
    return key_text(ec.generate_private_key(ec.SECP256R1()))


def key_text(key: ec.EllipticCurvePrivateKey) -> str:
    """Returns a key in PEM and PKCS#8."""
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()


def read_key(key: str) -> PrivateKeyTypes | None:
    """Returns a key in PEM, or None for one that is too long to be of a curve. Raises TypeError, ValueError or UnsupportedAlgorithm."""
    if len(key) > LONGEST_KEY:
        return None
    return serialization.load_pem_private_key(key.encode(), None, unsafe_skip_rsa_key_validation=True)


def make_authority(name: str, key: str, validity: Validity) -> KeyPair:
    """Returns a self-signed certificate that signs others. Raises ValueError for an invalid key."""
    private = _loaded(key)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = _builder(subject, subject, private.public_key(), validity)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    return KeyPair(_signed(builder, private), key)


def issue(authority: KeyPair, subject: Subject, hosts: Sequence[str], key: str, validity: Validity) -> KeyPair:
    """Returns a certificate for a server with these hosts, and for a client. It does not outlive its authority. Raises ValueError."""
    signer, private = x509.load_pem_x509_certificate(authority.certificate.encode()), _loaded(key)
    life = min(validity.life, signer.not_valid_after_utc - validity.now)
    builder = _builder(subject.x500, signer.subject, private.public_key(), Validity(validity.now, life))
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
    )
    builder = builder.add_extension(_identifier_of(signer), critical=False)
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
    return KeyPair(_signed(builder, _loaded(authority.key)), key)


def named_key(certificate: x509.Certificate) -> bytes | None:
    """Returns the identifier that an authority's certificate gives its own key. None if it has none."""
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    except x509.ExtensionNotFound:
        return None


def _identifier_of(signer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """Returns the identifier of the signer's key as its certificate has it, which is not always a SHA-1: OpenSSL and Java compare it."""
    own = named_key(signer)
    if own is None:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())  # type: ignore[arg-type]  # of a curve
    return x509.AuthorityKeyIdentifier(own, None, None)


def is_pair(certificate: str, key: str) -> bool:
    """Returns whether key and certificate, each in PEM, belong together. False if one is damaged."""
    try:
        return x509.load_pem_x509_certificate(certificate.encode()).public_key() == _loaded(key).public_key()
    except ValueError:
        return False


def _builder(subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, validity: Validity) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(validity.now - BACKDATED)
        .not_valid_after(validity.now + validity.life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _signed(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> str:
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def _loaded(key: str) -> ec.EllipticCurvePrivateKey:
    try:
        loaded = read_key(key)
    except (TypeError, UnsupportedAlgorithm) as error:  # one with a password, or of an unknown kind
        raise ValueError(str(error)) from error
    if not isinstance(loaded, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is not one of an elliptic curve")
    return loaded
