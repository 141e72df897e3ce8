"""Makes X.509 certificates (RFC 5280) as ZooKeeper, BookKeeper and HerdDB take them.

Keys are of the curve P-256, in PEM and PKCS#8 (what Java's readers of PEM files expect). Each authority has a subject of its own: ZooKeeper
keeps those that it trusts by their subjects, so that of two with one subject only the last counts (PemReader, 3.9.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CERTIFICATE_LIFE = timedelta(days=365)
AUTHORITY_LIFE = timedelta(days=3650)
BACKDATED = timedelta(hours=1)
"""A certificate is valid from so long before it is made: clocks of nodes differ."""


@dataclass(frozen=True)
class KeyPair:
    """A certificate with its key, each in PEM."""

    certificate: str
    key: str = field(repr=False)


@dataclass(frozen=True)
class Subject:
    """Who a certificate is for. ACLs of ZooKeeper compare it whole, so it holds nothing that changes with a renewal.

    `may_use` is the BookKeeperCluster whose bookies let its holder in: BookKeeper reads it as a role (CertUtils, 4.18: `0:` before it).
    """

    name: str
    may_use: str | None = None

    @property
    def x500(self) -> x509.Name:
        """As it stands in the certificate."""
        unit = [] if self.may_use is None else [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, f"0:{self.may_use}")]
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name), *unit])


@dataclass(frozen=True)
class Validity:
    """From when on, and for how long."""

    now: datetime
    life: timedelta


def fresh_key() -> str:
    """A new private key, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()


def make_authority(name: str, key: str, validity: Validity) -> KeyPair:
    """A certificate that signs others, signed by itself. Raises ValueError for a key that is none."""
    private = _loaded(key)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = _builder(subject, subject, private.public_key(), validity)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    return KeyPair(_signed(builder, private), key)


def issue(authority: KeyPair, subject: Subject, hosts: Sequence[str], key: str, validity: Validity) -> KeyPair:
    """A certificate for a server under these host names, and for a client; it does not outlive its authority.

    Raises ValueError for an authority or a key that is damaged.
    """
    signer, private = x509.load_pem_x509_certificate(authority.certificate.encode()), _loaded(key)
    life = min(validity.life, signer.not_valid_after_utc - validity.now)
    builder = _builder(subject.x500, signer.subject, private.public_key(), Validity(validity.now, life))
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
    )
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),  # type: ignore[arg-type]  # of ours, a curve's
        critical=False,
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
    return KeyPair(_signed(builder, _loaded(authority.key)), key)


def is_pair(certificate: str, key: str) -> bool:
    """Whether the key is that of the certificate, each in PEM. False where one of them is damaged."""
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
    loaded = serialization.load_pem_private_key(key.encode(), None)
    if not isinstance(loaded, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is not one of an elliptic curve")
    return loaded
