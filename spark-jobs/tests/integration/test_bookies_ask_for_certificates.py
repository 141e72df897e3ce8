"""Real servers with mutual TLS: a SQL node writes its log to a bookie, this project's reader reads it, and nobody else is served."""

from __future__ import annotations

import re
import socket
import ssl
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from waits import wait_until

from herdkeeper.certificates.settings import bookie_lines
from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.protocol import BatchRead, ReadCode, batch_read_request
from herdkeeper.shared.names import IDENTITY_VARIABLE
from herdkeeper.sql.connection import Address, Connection
from herdkeeper_e2e.certificates import Authority, Issued
from herdkeeper_e2e.free_ports import free_port
from herdkeeper_e2e.mutual_tls import HOSTS, LOOPBACK, ROLE, SUBJECTS, TESTER, MountedSecret, stack_secrets
from herdkeeper_e2e.server_processes import CREDENTIALS, GUARDED_HTTP, LEDGERS_ROOT, NODE, Servers, leads, servers
from herdkeeper_e2e.tls_probe import fingerprint
from herdkeeper_jobs.bookkeeper.connection import BookieConnection, BookieUnreachableError, EntryAnswer, EntryRun
from herdkeeper_jobs.bookkeeper.metadata import open_catalog
from herdkeeper_jobs.bookkeeper.start_tls import encrypted

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]
BOOKIE = "bookie-0"
ANSWER_SECONDS = 60.0
PATIENCE_SECONDS = 120.0


class Stack:
    """A member, a bookie and a SQL node with its log in `ledger`."""

    def __init__(self, running: Servers, authority: Authority, stranger: Authority) -> None:
        self.servers, self.authority, self.stranger = running, authority, stranger
        assert running.secrets is not None
        self.secrets = running.secrets
        self.written = 0
        self.http = free_port()
        self.sql: Address
        self.bookie: BookieAddress
        self.ledger = -1

    def start(self) -> None:
        self.servers.start_zookeeper()
        image = {"bookieAuthProviderFactoryClass": "io.herdkeeper.bookie.TlsRequiredFactory"}
        self.servers.start_bookies(1, {**GUARDED_HTTP, "httpServerPort": self.http, **image})
        self.sql = self.servers.start_sql_node()
        with open_catalog(self.servers.zookeeper, LEDGERS_ROOT) as catalog:
            self.bookie = catalog.bookie_addresses()[BOOKIE]
            self.ledger = min(catalog.ledger_ids())
        self._execute("CREATE TABLE t (n int primary key)")

    def write(self, rows: int) -> None:
        """Writes rows in order, each acknowledged."""
        for _ in range(rows):
            self._execute(f"INSERT INTO t (n) VALUES ({self.written})")
            self.written += 1

    def _execute(self, statement: str) -> None:
        with Connection.connect(self.sql, CREDENTIALS, timeout_seconds=PATIENCE_SECONDS) as connection:
            connection.execute(statement)

    def code(self, entry_id: int = 0) -> ReadCode:
        """The bookie's answer to this process, asked for one entry."""
        with BookieConnection(BOOKIE, self.bookie, ANSWER_SECONDS) as connection:
            return next(connection.read_entries(self.ledger, [entry_id])).code

    def holder(self, issued: Issued) -> MountedSecret:
        """A client with this certificate, which trusts the bookie."""
        made = MountedSecret(self.servers.folder / f"holder-{issued.fingerprint[:12]}")
        made.hold(issued, self.authority.certificate)
        return made

    def everybody(self) -> tuple[tuple[MountedSecret, str], ...]:
        """All holders of a certificate, with its subject."""
        held = self.secrets
        return tuple(zip((held.zookeeper, held.bookies, held.nodes, held.tester), (*SUBJECTS.values(), TESTER), strict=True))

    def ensemble_serves(self) -> bool:
        with self.servers.client() as client:
            return client.exists("/") is not None

    def logged(self, words: str) -> None:
        """Waits until the bookie's log has them."""
        log = self.servers.folder / f"{BOOKIE}.log"
        wait_until(f"the bookie tells: {words}", lambda: words in log.read_text(errors="replace"), PATIENCE_SECONDS)

    def refused_plain_text(self) -> int:
        """How many connections without TLS the bookie has told of, by its metrics."""
        with urllib.request.urlopen(f"http://{LOOPBACK}:{self.http}/metrics", timeout=ANSWER_SECONDS) as metrics:
            found = re.search(r'^herdkeeper_refused_total\{reason="plaintext"\} (\d+)$', metrics.read().decode(), re.MULTILINE)
        assert found is not None
        return int(found[1])

    def lets_in(self) -> bool:
        """Whether the bookie serves this process."""
        try:
            return self.code() is ReadCode.OK
        except BookieUnreachableError:
            return False

    def shown(self) -> str:
        """The fingerprint of the bookie's certificate in a new handshake."""
        with socket.create_connection((self.bookie.host, self.bookie.port), ANSWER_SECONDS) as opened:
            certificate = encrypted(opened, self.secrets.tester.identity(), self.bookie.host).getpeercert(binary_form=True)
        assert certificate is not None
        return fingerprint(certificate)


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """The whole stack, with this process as the tester."""
    with servers() as running, pytest.MonkeyPatch.context() as environment:
        authorities = []
        for name in ("trusted", "stranger"):
            (running.folder / name).mkdir()
            authorities.append(Authority(running.folder / name, name))
        running.secrets = stack_secrets(running.folder / "secrets", authorities[0])
        environment.setenv(IDENTITY_VARIABLE, str(running.secrets.tester.folder))
        made = Stack(running, *authorities)
        made.start()
        yield made


def entries_of(connection: BookieConnection, ledger: int, last: int) -> list[EntryAnswer]:
    """A ledger's entries up to one, one by one."""
    parts = connection.read_runs(ledger, 0, last)
    return [answer for part in parts for answer in (part.answers() if isinstance(part, EntryRun) else (part,))]


def test_a_sql_node_writes_its_log_and_a_job_reads_it(stack: Stack) -> None:
    stack.write(20)
    with open_catalog(stack.servers.zookeeper, LEDGERS_ROOT) as catalog:
        address = catalog.bookie_addresses()[BOOKIE]
    with BookieConnection(BOOKIE, address, ANSWER_SECONDS) as connection:
        answers = entries_of(connection, stack.ledger, 15)
    assert [answer.code for answer in answers] == [ReadCode.OK] * 16
    assert all(answer.data for answer in answers)


def test_a_plain_text_client_reads_nothing_and_is_told_of(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (stack.code(), stack.refused_plain_text()) == (ReadCode.OK, 0)
    monkeypatch.delenv(IDENTITY_VARIABLE)
    assert stack.code() is ReadCode.UNAUTHORIZED
    wait_until("the bookie counts it", lambda: stack.refused_plain_text() == 1, PATIENCE_SECONDS)
    stack.logged(f"refused /{LOOPBACK}:")
    with socket.create_connection((stack.bookie.host, stack.bookie.port), ANSWER_SECONDS) as plain:
        plain.sendall(batch_read_request(BatchRead(stack.ledger, 0, 10, 1000), 1))
        with suppress(ConnectionResetError):  # closed, cleanly or not
            assert plain.recv(100) == b""


def test_a_plain_connection_ends_by_itself_and_one_with_a_certificate_stays(stack: Stack) -> None:
    """Of the same age: the one with a certificate is asked again after the end of the other."""
    told = stack.refused_plain_text()
    with (
        BookieConnection(BOOKIE, stack.bookie, ANSWER_SECONDS) as encrypted_one,
        socket.create_connection((stack.bookie.host, stack.bookie.port), ANSWER_SECONDS) as plain,
    ):
        assert next(encrypted_one.read_entries(stack.ledger, [0])).code is ReadCode.OK
        with suppress(ConnectionResetError):  # closed, cleanly or not
            assert plain.recv(1) == b""
        assert next(encrypted_one.read_entries(stack.ledger, [0])).code is ReadCode.OK
    wait_until("the bookie counts it once", lambda: stack.refused_plain_text() == told + 1, PATIENCE_SECONDS)


def test_a_certificate_of_another_role_or_authority_opens_nothing(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    of_another_log = stack.holder(stack.authority.issue(HOSTS, "/CN=tester/OU=0:another-log"))
    monkeypatch.setenv(IDENTITY_VARIABLE, str(of_another_log.folder))
    with pytest.raises(BookieUnreachableError, match="answered NOT_LET_IN to this job's certificate"):
        stack.code()
    stack.logged("AuthZ failed: Cert role doesn't match")
    for issued in (stack.stranger.issue(HOSTS, TESTER), stack.authority.issue(HOSTS, TESTER, days="-1")):
        monkeypatch.setenv(IDENTITY_VARIABLE, str(stack.holder(issued).folder))
        with pytest.raises(BookieUnreachableError, match=r"(?i)alert|unknown|expired"):
            stack.code()
    stack.logged("TLS Handshake failure")


def test_a_bookie_that_can_not_be_verified_is_asked_nothing(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    doubting = MountedSecret(stack.servers.folder / "doubting")
    doubting.hold(stack.authority.issue(HOSTS, TESTER), stack.stranger.certificate)
    monkeypatch.setenv(IDENTITY_VARIABLE, str(doubting.folder))
    with pytest.raises(BookieUnreachableError, match="certificate verify failed"):
        stack.code()


def test_a_renewed_certificate_is_shown_without_a_restart(stack: Stack) -> None:
    before = stack.shown()
    renewed = stack.authority.issue(HOSTS, SUBJECTS["bookies"])
    stack.secrets.bookies.hold(renewed)
    wait_until("the bookie shows its new certificate", lambda: stack.shown() == renewed.fingerprint, PATIENCE_SECONDS)
    assert renewed.fingerprint != before
    stack.write(5)


def test_an_authority_follows_another_while_the_bookie_serves(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """All trust both authorities, all get a certificate of the new one, then the old one is removed. ZooKeeper's member only trusts another
    authority after a restart; the bookie needs none."""
    old, new = stack.authority, stack.stranger
    both = f"{old.certificate}{new.certificate}"
    bookie = stack.servers.processes[BOOKIE].pid
    for secret, subject in stack.everybody():
        secret.hold(old.issue(HOSTS, subject), both)
    stack.servers.kill("zookeeper")
    stack.servers.start_again("zookeeper", stack.ensemble_serves)
    newcomer = stack.holder(new.issue(HOSTS, TESTER))
    with monkeypatch.context() as other:
        other.setenv(IDENTITY_VARIABLE, str(newcomer.folder))
        wait_until("the bookie lets clients of the new authority in", stack.lets_in, PATIENCE_SECONDS)
    stack.write(5)

    for secret, subject in stack.everybody():
        secret.hold(new.issue(HOSTS, subject), both)
    latest = fingerprint(ssl.PEM_cert_to_DER_cert(stack.secrets.bookies.identity().certificate))
    wait_until("the bookie shows a certificate of the new authority", lambda: stack.shown() == latest, PATIENCE_SECONDS)
    stack.servers.kill(NODE)
    stack.servers.start_again(NODE, lambda: leads(stack.sql))
    stack.write(5)

    stack.secrets.bookies.hold(new.issue(HOSTS, SUBJECTS["bookies"]), new.certificate)
    latecomer = stack.holder(old.issue(HOSTS, TESTER))
    latecomer.hold(old.issue(HOSTS, TESTER), both)
    with monkeypatch.context() as other:
        other.setenv(IDENTITY_VARIABLE, str(latecomer.folder))
        wait_until("the bookie refuses clients of the old authority", lambda: not stack.lets_in(), PATIENCE_SECONDS)
    assert stack.code() is ReadCode.OK
    stack.write(5)
    assert stack.servers.processes[BOOKIE].pid == bookie


def test_certificates_alone_keep_nobody_out(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """BookKeeper only offers TLS; its check of roles requires it. This is the last test: the log loses its only bookie."""

    def without_roles(folder: Path) -> None:
        file = folder / "bk_server.conf"
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(line for line in lines if not line.startswith(tuple(bookie_lines(ROLE)))))

    stack.servers.restart_bookie(BOOKIE, without_roles)
    with open_catalog(stack.servers.zookeeper, LEDGERS_ROOT) as catalog:
        stack.bookie = catalog.bookie_addresses()[BOOKIE]
    assert stack.code() is ReadCode.OK
    monkeypatch.delenv(IDENTITY_VARIABLE)
    assert stack.code() is ReadCode.OK
