"""The certificates that the operator makes for a stack in the namespace `demo`, for real servers on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, ZooKeeperCluster
from herdkeeper.certificates.authority import read_authority
from herdkeeper.certificates.given_authority import given_authority
from herdkeeper.certificates.holders import due_changes
from herdkeeper.certificates.issue import KeyPair, Validity, fresh_key, make_authority
from herdkeeper.certificates.roles import bookkeeper_holders, sql_nodes_holder
from herdkeeper.planning.identities import secret_of
from herdkeeper.shared.objects import Objects
from herdkeeper.zookeeper.observe_security import kept_authorities, observe_security

OF_THE_OPERATOR: Mapping[str, KeyPair] = {}
META = {"namespace": "demo", "uid": "a-uid"}
ZOOKEEPER = ZooKeeperCluster.model_validate({"metadata": {**META, "name": "zk"}, "spec": {"security": {"mode": "TLS"}}})


def bookkeeper_cluster(name: str) -> BookKeeperCluster:
    """One on the ensemble."""
    return BookKeeperCluster.model_validate({"metadata": {**META, "name": name}, "spec": {"zooKeeperRef": {"name": "zk"}}})


def herddb_cluster(name: str, bookkeeper: str) -> HerdDBCluster:
    """One with its log there."""
    return HerdDBCluster.model_validate({"metadata": {**META, "name": name}, "spec": {"bookKeeperRef": {"name": bookkeeper}}})


def intermediate_authority(name: str) -> KeyPair:
    """One that an authority above it has signed, as cert-manager issues it; nobody has the one above. What it signs is valid from a year
    before it.
    """
    now, above = datetime.now(UTC), ec.generate_private_key(ec.SECP256R1())
    made = make_authority(name, fresh_key(), Validity(now, timedelta(days=30)))
    held = x509.load_pem_x509_certificate(made.certificate.encode())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "company root")])
    builder = x509.CertificateBuilder(
        issuer, held.subject, held.public_key(), held.serial_number, now - timedelta(minutes=1), held.not_valid_after_utc
    )
    for extension in held.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    signed = builder.sign(above, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
    return given_authority({"tls.crt": signed, "tls.key": made.key}, now)


def issued(*stacks: tuple[BookKeeperCluster, HerdDBCluster], given: Mapping[str, KeyPair] = OF_THE_OPERATOR) -> dict[str, dict[str, str]]:
    """The operator's Secrets of a new ensemble and of the clusters on it, by name. `given`: authorities by the Secret that keeps them."""
    now = datetime.now(UTC)
    fresh = observe_security(ZOOKEEPER, Objects({}), {}, given, now).fresh_authorities
    stored = {("Secret", name): secret_of({"name": name}, data) for name, data in fresh.items()}
    found = Objects(stored)
    members = observe_security(ZOOKEEPER, found, kept_authorities(ZOOKEEPER, found), given, now).identities.changes
    authority = read_authority("zk", fresh[ZOOKEEPER.names.authority_secret])
    holders = [holder for log, database in stacks for holder in (*bookkeeper_holders(log), sql_nodes_holder(database))]
    others = due_changes(holders, {}, authority, fresh_key, Validity(now, timedelta(days=1)))
    return {change.holder.secret: dict(change.data) for change in (*members, *others)}
