"""Certificates for a test's servers, in files like those that Kubernetes mounts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from herdkeeper.certificates.settings import KEY_STORE_KEY, client_port_lines
from herdkeeper.shared.names import AUTHORITIES_KEY, CERTIFICATE_KEY, PRIVATE_KEY_KEY
from herdkeeper.tls.identity import MountedIdentity
from herdkeeper_e2e.certificates import Authority, Issued


@dataclass(frozen=True)
class MountedSecret:
    """A folder with files that change together, by the link `..data`, as the kubelet writes Secrets."""

    folder: Path

    def write(self, files: Mapping[str, str]) -> None:
        """Replace all files."""
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
        """Put a certificate there; `authorities` are what its holder trusts, by default its issuer."""
        self.write(
            {
                CERTIFICATE_KEY: issued.certificate,
                PRIVATE_KEY_KEY: issued.key,
                KEY_STORE_KEY: f"{issued.key}{issued.certificate}",
                AUTHORITIES_KEY: issued.authority if authorities is None else authorities,
            }
        )

    @property
    def identity(self) -> MountedIdentity:
        """Returns the identity as the project's clients read it."""
        return MountedIdentity(str(self.folder))


@dataclass(frozen=True)
class StackSecrets:
    """Certificates of one stack's servers and of its tester, in folders, all by one authority."""

    zookeeper: MountedSecret
    bookies: MountedSecret
    nodes: MountedSecret
    tester: MountedSecret

    def zookeeper_lines(self, port: int) -> dict[str, object]:
        """Returns settings of a member that requires certificates."""
        return {"secureClientPortAddress": LOOPBACK, **client_port_lines(str(self.zookeeper.folder), port), **ACCESS_LINES}


LOOPBACK = "127.0.0.1"
HOSTS = (LOOPBACK, "localhost")
"""Host names of tests' servers. ZooKeeper's client resolves the name of an address before it compares."""
ACCESS_LINES = {
    "authProvider.x509": "io.herdkeeper.zookeeper.CertificateLogin",
    "authProvider.stack": "io.herdkeeper.zookeeper.StackAccess",
}
"""What the ZooKeeper image's entry point adds where clients need certificates."""
REFRESHED = {"tlsCertFilesRefreshDurationSeconds": 1}
"""BookKeeper checks for changed files more often than in production."""
ROLE = "the-log"
"""Role of authorized clients of the bookies."""
SUBJECTS = {"zookeeper": "/CN=zookeeper", "bookies": f"/CN=bookies/OU=0:{ROLE}", "nodes": f"/CN=nodes/OU=0:{ROLE}"}
TESTER = f"/CN=tester/OU=0:{ROLE}"


def stack_secrets(folder: Path, authority: Authority) -> StackSecrets:
    """Returns certificates for all servers on this machine."""
    made = StackSecrets(*(MountedSecret(folder / name) for name in (*SUBJECTS, "tester")))
    for secret, subject in zip((made.zookeeper, made.bookies, made.nodes, made.tester), (*SUBJECTS.values(), TESTER), strict=True):
        secret.hold(authority.issue(HOSTS, subject))
    return made
