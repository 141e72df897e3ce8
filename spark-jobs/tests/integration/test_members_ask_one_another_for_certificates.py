"""Three real members of ZooKeeper that speak TLS among themselves, and are restarted one at a time while somebody writes."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest
from kazoo.client import KazooClient
from waits import wait_until

from herdkeeper.certificates.settings import quorum_lines
from herdkeeper.tls.context import mutual_context
from herdkeeper_e2e.certificates import Authority
from herdkeeper_e2e.free_ports import free_ports
from herdkeeper_e2e.mutual_tls import HOSTS, LOOPBACK, MountedSecret
from herdkeeper_e2e.server_processes import Servers, servers
from herdkeeper_e2e.tls_probe import fingerprint

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]
MEMBERS = (1, 2, 3)
PATIENCE_SECONDS = 90.0


@dataclass(frozen=True)
class Ports:
    client: int
    quorum: int
    election: int


class Ensemble:
    """The members have certificates of their own authority; `client` has one of the clients' authority."""

    def __init__(self, running: Servers) -> None:
        self.servers = running
        self.ports = {number: Ports(*free_ports(3)) for number in MEMBERS}
        for name in ("members", "clients"):
            (running.folder / name).mkdir()
        self.authority, clients = (Authority(running.folder / name, name) for name in ("members", "clients"))
        self.secret, self.client = (MountedSecret(running.folder / name) for name in ("member-secret", "client-secret"))
        self.secret.hold(self.authority.issue(HOSTS, "/CN=member"))
        self.client.hold(clients.issue(HOSTS, "/CN=client"), self.authority.certificate)
        self.written = 0
        self.session = KazooClient(
            hosts=",".join(f"{LOOPBACK}:{each.client}" for each in self.ports.values()),
            timeout=20.0,
            connection_retry={"max_tries": -1, "max_delay": 0.5},
            command_retry={"max_tries": -1, "max_delay": 0.5},
        )

    def start(self, number: int) -> None:
        """A member."""
        folder, ports = self.servers.folder / f"member-{number}", self.ports[number]
        folder.mkdir(exist_ok=True)
        (folder / "myid").write_text(str(number))
        settings = {
            "dataDir": folder,
            "tickTime": 1000,
            "initLimit": 20,
            "syncLimit": 4,
            "clientPort": ports.client,
            "clientPortAddress": LOOPBACK,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "srvr",
            "sslQuorumReloadCertFiles": "true",
            **quorum_lines(str(self.secret.folder)),
            **{f"server.{each}": f"{LOOPBACK}:{other.quorum}:{other.election}" for each, other in self.ports.items()},
        }
        (folder / "zoo.cfg").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        command = ("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(folder / "zoo.cfg"))
        self.servers._start(name_of(number), ["-Xmx128m", "-Dzookeeper.forceSync=no"], "zookeeper", command)

    def mode(self, number: int) -> str:
        """`leader` or `follower`, empty while it does not serve."""
        try:
            with socket.create_connection((LOOPBACK, self.ports[number].client), 2.0) as asked, asked.makefile() as lines:
                asked.sendall(b"srvr")
                return next((line.removeprefix("Mode: ").strip() for line in lines if line.startswith("Mode: ")), "")
        except OSError:
            return ""

    def serves(self, number: int) -> bool:
        return self.mode(number) != ""

    def roll(self) -> None:
        """One member after the other, each when the one before serves again; a row is written behind each."""
        for number in MEMBERS:
            self.servers.processes[name_of(number)].terminate()
            self.servers.processes[name_of(number)].wait()
            self.start(number)
            wait_until(f"member {number} serves", lambda: self.serves(number), PATIENCE_SECONDS)  # noqa: B023 - called here
            self.write()

    def write(self) -> None:
        self.session.create(f"/written/{self.written}", makepath=True)
        self.written += 1

    def shown(self, number: int, who: MountedSecret, seconds: float = 2.0) -> str:
        """The fingerprint of a member's certificate at its election port. Raises ssl.SSLError if `who` is refused within these seconds."""
        with (
            socket.create_connection((LOOPBACK, self.ports[number].election), PATIENCE_SECONDS) as opened,
            mutual_context(who.identity()).wrap_socket(opened, server_hostname=LOOPBACK) as encrypted,
        ):
            certificate = encrypted.getpeercert(binary_form=True)
            encrypted.settimeout(seconds)
            with suppress(TimeoutError):
                encrypted.recv(1)  # TLS 1.3: a refusal comes after the handshake
        assert certificate is not None
        return fingerprint(certificate)


def name_of(number: int) -> str:
    return f"member-{number}-process"


@pytest.fixture(scope="module")
def ensemble() -> Iterator[Ensemble]:
    """Members that serve."""
    with servers() as running:
        made = Ensemble(running)
        for number in MEMBERS:
            made.start(number)
        for number in MEMBERS:
            wait_until(f"member {number} serves", lambda: made.serves(number), PATIENCE_SECONDS)  # noqa: B023 - called here
        made.session.start(timeout=PATIENCE_SECONDS)
        yield made
        made.session.stop()
        made.session.close()


def test_nobody_else_speaks_to_a_member(ensemble: Ensemble) -> None:
    """Only the members' authority makes a member: no host name is compared."""
    leaders: list[int] = []

    def a_member_leads() -> bool:
        leaders.extend(number for number in MEMBERS if ensemble.mode(number) == "leader")
        return leaders != []

    wait_until("a member says that it leads", a_member_leads, PATIENCE_SECONDS)
    for port in (ensemble.ports[leaders[0]].election, ensemble.ports[leaders[0]].quorum):
        with socket.create_connection((LOOPBACK, port), PATIENCE_SECONDS) as plain:
            plain.sendall(b"x" * 40)
            with suppress(ConnectionError):
                assert plain.recv(10) == b""
    with pytest.raises(ssl.SSLError):
        ensemble.shown(1, ensemble.client, PATIENCE_SECONDS)
    assert ensemble.shown(1, ensemble.secret)


def test_a_member_reads_its_mounted_certificate_when_it_starts_and_never_again(ensemble: Ensemble) -> None:
    """ZooKeeper's watcher watches the files' names, but in a mounted folder only the link `..data` changes."""
    before = ensemble.shown(2, ensemble.secret)
    renewed = ensemble.authority.issue(HOSTS, "/CN=member")
    ensemble.secret.hold(renewed)
    assert ensemble.shown(2, ensemble.secret) == before
    ensemble.roll()
    assert [ensemble.shown(number, ensemble.secret) for number in MEMBERS] == [renewed.fingerprint] * 3
    assert len(ensemble.session.get_children("/written")) == ensemble.written == 3
