"""What servers need to know one another by certificates: files as Kubernetes mounts them, and the settings of each program."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from herdkeeper.tls.identity import AUTHORITIES_FILE, CERTIFICATE_FILE, KEY_FILE, MountedIdentity
from herdkeeper_e2e.certificates import Authority, Issued

KEY_STORE_FILE = "keystore.pem"
"""Key and certificate in one file, as ZooKeeper reads them."""
REFRESH_SECONDS = 1
"""After so long BookKeeper looks whether its files have changed; not before its next connection."""


@dataclass(frozen=True)
class MountedSecret:
    """A folder with files that change together, by the link `..data`, as kubelet writes Secrets."""

    folder: Path

    def write(self, files: Mapping[str, str]) -> None:
        """Puts these files in the place of those that are there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        before = self.folder / "..data"
        old = os.readlink(before) if before.is_symlink() else None
        new = f"..{int((old or '..0').removeprefix('..')) + 1}"
        (self.folder / new).mkdir()
        for name, text in files.items():
            (self.folder / new / name).write_text(text)
        (self.folder / "..data_tmp").symlink_to(new)
        (self.folder / "..data_tmp").rename(before)
        for name in files:
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(f"..data/{name}")
        if old is not None:
            shutil.rmtree(self.folder / old)

    def hold(self, issued: Issued, authorities: str | None = None) -> None:
        """Puts a certificate there; `authorities` are whom its holder trusts, where that is not the one that signed it."""
        self.write(
            {
                CERTIFICATE_FILE: issued.certificate,
                KEY_FILE: issued.key,
                KEY_STORE_FILE: f"{issued.key}{issued.certificate}",
                AUTHORITIES_FILE: issued.authority if authorities is None else authorities,
            }
        )

    @property
    def identity(self) -> MountedIdentity:
        """As clients of this project read it."""
        return MountedIdentity(str(self.folder))

    def stores(self, prefix: str) -> dict[str, str]:
        """ZooKeeper's settings `<prefix>keyStore…` and `<prefix>trustStore…`."""
        files = {"keyStore": KEY_STORE_FILE, "trustStore": AUTHORITIES_FILE}
        where = {f"{prefix}{store}.location": str(self.folder / file) for store, file in files.items()}
        return {**where, **{f"{prefix}{store}.type": "PEM" for store in files}}

    def java_options(self) -> tuple[str, ...]:
        """Of a JVM whose ZooKeeper clients connect with this certificate."""
        settings = {
            "zookeeper.client.secure": "true",
            "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
            **self.stores("zookeeper.ssl."),
        }
        return tuple(f"-D{key}={value}" for key, value in settings.items())

    def bookkeeper_lines(self) -> dict[str, object]:
        """Of a bookie, of autorecovery, and of BookKeeper's client."""
        return {
            "tlsProviderFactoryClass": "org.apache.bookkeeper.tls.TLSContextFactory",
            "tlsClientAuthentication": "true",
            "tlsHostnameVerificationEnabled": "true",
            "tlsKeyStoreType": "PEM",
            "tlsKeyStore": self.folder / KEY_FILE,
            "tlsCertificatePath": self.folder / CERTIFICATE_FILE,
            "tlsTrustStoreType": "PEM",
            "tlsTrustStore": self.folder / AUTHORITIES_FILE,
            "tlsCertFilesRefreshDurationSeconds": REFRESH_SECONDS,
        }


def roles_lines(*roles: str) -> dict[str, object]:
    """Of a bookie that serves nobody but who shows a certificate with one of these roles."""
    return {
        "bookieAuthProviderFactoryClass": "org.apache.bookkeeper.tls.BookieAuthZFactory",
        "authorizedRoles": ",".join(roles),
    }


@dataclass(frozen=True)
class StackSecrets:
    """What the servers of one stack are given, and who tests it. The folders hold certificates of one authority."""

    zookeeper: MountedSecret
    bookies: MountedSecret
    nodes: MountedSecret
    tester: MountedSecret

    def zookeeper_lines(self, port: int) -> dict[str, object]:
        """Of a member that serves nobody without a certificate."""
        return {
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "secureClientPort": port,
            "secureClientPortAddress": LOOPBACK,
            **self.zookeeper.stores("ssl."),
        }


LOOPBACK = "127.0.0.1"
HOSTS = (LOOPBACK, "localhost")
"""Of the servers of tests. ZooKeeper's client looks up the name of an address before it compares."""
ROLE = "the-log"
"""Of whoever may use the bookies."""
SUBJECTS = {"zookeeper": "/CN=zookeeper", "bookies": f"/CN=bookies/OU=0:{ROLE}", "nodes": f"/CN=nodes/OU=0:{ROLE}"}
TESTER = f"/CN=tester/OU=0:{ROLE}"


def stack_secrets(folder: Path, authority: Authority) -> StackSecrets:
    """Certificates for everybody, for servers on this machine."""
    made = StackSecrets(*(MountedSecret(folder / name) for name in (*SUBJECTS, "tester")))
    for secret, subject in zip((made.zookeeper, made.bookies, made.nodes, made.tester), (*SUBJECTS.values(), TESTER), strict=True):
        secret.hold(authority.issue(HOSTS, subject))
    return made
