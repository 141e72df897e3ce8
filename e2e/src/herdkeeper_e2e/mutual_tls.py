"""Certificates for the servers of a test, in files as Kubernetes mounts them."""

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
                CERTIFICATE_KEY: issued.certificate,
                PRIVATE_KEY_KEY: issued.key,
                KEY_STORE_KEY: f"{issued.key}{issued.certificate}",
                AUTHORITIES_KEY: issued.authority if authorities is None else authorities,
            }
        )

    @property
    def identity(self) -> MountedIdentity:
        """As clients of this project read it."""
        return MountedIdentity(str(self.folder))


@dataclass(frozen=True)
class StackSecrets:
    """What the servers of one stack are given, and who tests it. The folders hold certificates of one authority."""

    zookeeper: MountedSecret
    bookies: MountedSecret
    nodes: MountedSecret
    tester: MountedSecret

    def zookeeper_lines(self, port: int) -> dict[str, object]:
        """Of a member that serves nobody without a certificate."""
        return {"secureClientPortAddress": LOOPBACK, **client_port_lines(str(self.zookeeper.folder), port)}


LOOPBACK = "127.0.0.1"
HOSTS = (LOOPBACK, "localhost")
"""Of the servers of tests. ZooKeeper's client looks up the name of an address before it compares."""
REFRESHED = {"tlsCertFilesRefreshDurationSeconds": 1}
"""BookKeeper looks sooner than in earnest whether its files have changed."""
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
