"""A real ZooKeeper member that requires certificates: which clients it serves, under which identity, and which files it reads again."""

from __future__ import annotations

import re
import socket
import ssl
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import ACL, Id, Permissions
from waits import wait_until

from herdkeeper.codecs.authorities import client_context
from herdkeeper.tls.kazoo_handler import MutualTlsHandler
from herdkeeper_e2e.certificates import Authority
from herdkeeper_e2e.free_ports import free_port
from herdkeeper_e2e.mutual_tls import HOSTS, LOOPBACK, MountedSecret, stack_secrets
from herdkeeper_e2e.server_processes import Servers, servers
from herdkeeper_e2e.tls_probe import shown_certificate

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]
REFUSED_SECONDS = 5.0
"""By then an accepted client has long been connected."""
SERVED_SECONDS = 60.0


class Ensemble:
    """One member, an authority that it trusts, and one that it doesn't."""

    def __init__(self, running: Servers) -> None:
        self.servers = running
        self.authority, self.stranger = (made_authority(running.folder / name, name) for name in ("trusted", "stranger"))
        self.secrets = running.secrets = stack_secrets(running.folder / "secrets", self.authority)

    @property
    def port(self) -> int:
        return int(self.servers.zookeeper.rpartition(":")[2])

    def client_of(self, authority: Authority, subject: str) -> MountedSecret:
        """A client with a certificate of this authority, which trusts the member."""
        made = MountedSecret(self.servers.folder / f"client-{subject.strip('/').replace('=', '-')}")
        made.hold(authority.issue(HOSTS, subject), self.authority.certificate)
        return made

    @contextmanager
    def session(self, secret: MountedSecret, seconds: float = SERVED_SECONDS) -> Iterator[KazooClient]:
        """Raises KazooTimeoutError if it is not served within these seconds."""
        client = KazooClient(hosts=self.servers.zookeeper, timeout=10.0, handler=MutualTlsHandler(secret.identity))
        try:
            client.start(timeout=seconds)
            yield client
        finally:
            client.stop()
            client.close()

    def is_served(self, secret: MountedSecret, seconds: float = SERVED_SECONDS) -> bool:
        try:
            with self.session(secret, seconds) as client:
                return client.exists("/") is not None
        except KazooTimeoutError:
            return False

    def is_refused(self, secret: MountedSecret) -> bool:
        return not self.is_served(secret, REFUSED_SECONDS)

    def start(self) -> None:
        self.metrics = free_port()
        provider = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"
        self.servers.start_zookeeper({"metricsProvider.className": provider, "metricsProvider.httpPort": self.metrics})

    def refusals(self) -> float:
        """By its metric."""
        with urllib.request.urlopen(f"http://{LOOPBACK}:{self.metrics}/metrics", timeout=SERVED_SECONDS) as answer:
            found = re.search(r"^unsuccessful_handshake (\S+)$", answer.read().decode(), re.MULTILINE)
        assert found is not None
        return float(found[1])

    def restart(self) -> None:
        self.servers.kill("zookeeper")
        self.servers.start_again("zookeeper", lambda: self.is_served(self.secrets.tester))


def made_authority(folder: Path, name: str) -> Authority:
    folder.mkdir(exist_ok=True)
    return Authority(folder, name)


@pytest.fixture
def ensemble() -> Iterator[Ensemble]:
    """A new one per test: what its member has read at its start matters."""
    with servers() as running:
        made = Ensemble(running)
        made.start()
        yield made


def test_nobody_is_served_without_a_certificate_that_the_member_trusts(ensemble: Ensemble) -> None:
    with socket.create_connection((LOOPBACK, ensemble.port), SERVED_SECONDS) as plain:
        plain.sendall(b"srvr\n")
        assert plain.recv(100) == b""
    with (
        socket.create_connection((LOOPBACK, ensemble.port), SERVED_SECONDS) as opened,
        client_context(ensemble.authority.certificate).wrap_socket(opened, server_hostname=LOOPBACK) as nobody,
        pytest.raises(ssl.SSLError, match=r"(?i)certificate.required|bad.certificate"),
    ):
        nobody.recv(100)  # TLS 1.3: the server's refusal comes after the handshake
    assert ensemble.is_refused(ensemble.client_of(ensemble.stranger, "/CN=stranger"))
    assert ensemble.is_served(ensemble.client_of(ensemble.authority, "/CN=somebody"))
    assert ensemble.refusals() >= len(("in plain text", "without a certificate", "with one of a stranger"))
    told = (ensemble.servers.folder / "zookeeper.log").read_text(errors="replace").count("Unsuccessful handshake with session")
    assert told >= len(("in plain text", "without a certificate", "with one of a stranger"))


def test_a_member_that_can_not_be_verified_is_sent_nothing(ensemble: Ensemble) -> None:
    doubting = MountedSecret(ensemble.servers.folder / "doubting")
    doubting.hold(ensemble.authority.issue(HOSTS, "/CN=doubting"), ensemble.stranger.certificate)
    handler = MutualTlsHandler(doubting.identity)
    client = KazooClient(hosts=ensemble.servers.zookeeper, timeout=10.0, handler=handler)
    client.start_async()
    try:
        wait_until("it doubts the member", lambda: handler.refused is not None, SERVED_SECONDS)
        assert not client.connected
    finally:
        client.stop()
        client.close()
    assert handler.refused is not None
    assert "certificate verify failed" in handler.refused


def test_a_subjects_znode_is_closed_to_other_subjects(ensemble: Ensemble) -> None:
    owner, other = (ensemble.client_of(ensemble.authority, f"/CN={name}/OU=0:the-log") for name in ("owner", "other"))
    with ensemble.session(owner) as client:
        client.create("/mine", b"x", acl=[ACL(Permissions.ALL, Id("x509", "OU=0:the-log,CN=owner"))])
    with ensemble.session(other) as client:
        attempts: list[Callable[[], Any]] = [
            lambda: client.get("/mine"),
            lambda: client.set("/mine", b"y"),
            lambda: client.create("/mine/child"),
        ]
        for forbidden in attempts:
            with pytest.raises(NoAuthError):
                forbidden()
    renewed = ensemble.client_of(ensemble.authority, "/CN=owner/OU=0:the-log")
    with ensemble.session(renewed) as client:
        assert client.get("/mine")[0] == b"x"


def test_many_answers_at_once_all_arrive(ensemble: Ensemble) -> None:
    with ensemble.session(ensemble.secrets.tester) as client:
        client.ensure_path("/many")
        asked = [client.create_async(f"/many/{number:05d}", bytes(number % 300)) for number in range(2000)]
        assert [each.get(timeout=SERVED_SECONDS) for each in asked] == [f"/many/{number:05d}" for number in range(2000)]
        read = [client.get_async(f"/many/{number:05d}") for number in range(2000)]
        assert [len(each.get(timeout=SERVED_SECONDS)[0]) for each in read] == [number % 300 for number in range(2000)]


def test_a_renewed_certificate_is_shown_to_the_next_client_without_a_restart(ensemble: Ensemble) -> None:
    authorities = ensemble.authority.certificate
    with ensemble.session(ensemble.secrets.tester) as client:
        before = shown_certificate(LOOPBACK, ensemble.port, authorities)
        renewed = ensemble.authority.issue(HOSTS, "/CN=zookeeper")
        ensemble.secrets.zookeeper.hold(renewed)
        assert shown_certificate(LOOPBACK, ensemble.port, authorities) == renewed.fingerprint != before
        assert client.exists("/") is not None


def test_clients_of_another_authority_are_served_only_after_a_restart(ensemble: Ensemble) -> None:
    """The handshake reads the authorities each time, the authentication after it only at the start."""
    newcomer = ensemble.client_of(ensemble.stranger, "/CN=newcomer")
    own = ensemble.authority.issue(HOSTS, "/CN=zookeeper")
    ensemble.secrets.zookeeper.hold(own, f"{ensemble.authority.certificate}{ensemble.stranger.certificate}")
    assert ensemble.is_refused(newcomer)
    ensemble.restart()
    assert ensemble.is_served(newcomer)
    assert ensemble.is_served(ensemble.secrets.tester)
    # Both count during the change; the old one ends with the next restart.
    ensemble.secrets.zookeeper.hold(own, ensemble.stranger.certificate)
    assert ensemble.is_refused(ensemble.secrets.tester)


def test_of_two_authorities_of_one_name_the_last_one_counts_alone(ensemble: Ensemble) -> None:
    """ZooKeeper stores them by subject: successive authorities need different names."""
    namesake = made_authority(ensemble.servers.folder / "namesake", "trusted")
    own = ensemble.authority.issue(HOSTS, "/CN=zookeeper")
    ensemble.secrets.zookeeper.hold(own, f"{namesake.certificate}{ensemble.authority.certificate}")
    ensemble.restart()
    assert ensemble.is_refused(ensemble.client_of(namesake, "/CN=namesake"))
    assert ensemble.is_served(ensemble.secrets.tester)
