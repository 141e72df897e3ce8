"""Connections to a bookie that requires certificates: played bookies behind real TLS, started like BookKeeper's."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from played_bookie import PlayedBookie, packed, served

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.protocol import ReadCode
from herdkeeper.shared.names import AUTHORITIES_KEY, CERTIFICATE_KEY, IDENTITY_VARIABLE, PRIVATE_KEY_KEY
from herdkeeper_e2e.certificates import Authority, Issued
from herdkeeper_jobs.bookkeeper.connection import BookieConnection, BookieUnreachableError, EntryAnswer, EntryRun

HOST = "127.0.0.1"
BEGINS = bytes.fromhex("0000000d 0a06080310091800 1000 d20600")
NOT_CONFIGURED = bytes.fromhex("0000000e 0a06080310091800 109403 d20600")
NOT_LET_IN = bytes.fromhex("0000000b 0a06080310091800 10f503")
REQUEST = bytes.fromhex("0000000b 0a06080310091800 d20600")
ANSWER_SECONDS = 120.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "the authority of a test")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"), "a stranger")


@pytest.fixture(autouse=True)
def identity(authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with this process's certificate."""
    folder = tmp_path / "identity"
    folder.mkdir()
    hold(folder, authority.issue([HOST], "/CN=job"))
    monkeypatch.setenv(IDENTITY_VARIABLE, str(folder))
    return folder


def hold(folder: Path, issued: Issued) -> None:
    for name, text in ((CERTIFICATE_KEY, issued.certificate), (PRIVATE_KEY_KEY, issued.key), (AUTHORITIES_KEY, issued.authority)):
        (folder / name).write_text(text)


class Front:
    """A TLS front: takes a bookie's connections and passes on their decrypted content."""

    def __init__(self, issued: Issued, folder: Path, behind: BookieAddress) -> None:
        pem = folder / "served.pem"
        pem.write_text(issued.certificate + issued.key)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(pem)
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.context.load_verify_locations(cadata=issued.authority)
        self.behind = behind
        self.plain: list[bytes] = []
        """What was sent before TLS."""
        self.answer, self.says = BEGINS, b""
        """The answer to the request for TLS, and what is sent unasked after the handshake."""

    def take(self, stream: socket.socket) -> None:
        with suppress(OSError), stream:
            self.plain.append(stream.recv(len(REQUEST)))
            stream.sendall(self.answer)
            if self.answer != BEGINS:
                if self.answer:
                    self.plain.append(stream.recv(100))
                return
            with (
                self.context.wrap_socket(stream, server_side=True) as encrypted,
                socket.create_connection((self.behind.host, self.behind.port)) as bookie,
            ):
                if self.says:
                    encrypted.sendall(self.says)
                back = threading.Thread(target=pump, args=(bookie, encrypted), daemon=True)
                back.start()
                pump(encrypted, bookie)
                back.join()


def pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def front_of(bookie: PlayedBookie, issued: Issued, folder: Path) -> Iterator[tuple[Front, BookieAddress]]:
    with served(bookie) as addresses, socket.create_server((HOST, 0)) as listener:
        front = Front(issued, folder, addresses["b0"])

        def accept() -> None:
            with suppress(OSError):
                while True:
                    stream, _ = listener.accept()
                    threading.Thread(target=front.take, args=(stream,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield front, BookieAddress(HOST, listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)


def holding(entries: int) -> PlayedBookie:
    return PlayedBookie({(4, number): packed(4, number) for number in range(entries)})


def entries_of(connection: BookieConnection, last: int) -> list[EntryAnswer]:
    """The entries of ledger 4 up to one, one by one."""
    parts = connection.read_runs(4, 0, last)
    return [answer for part in parts for answer in (part.answers() if isinstance(part, EntryRun) else (part,))]


def test_everything_but_the_request_for_tls_is_encrypted(authority: Authority, tmp_path: Path) -> None:
    bookie = holding(600)
    with (
        front_of(bookie, authority.issue([HOST]), tmp_path) as (front, address),
        BookieConnection("b0", address, ANSWER_SECONDS) as connection,
    ):
        answers = entries_of(connection, 599)
    assert [answer.entry_id for answer in answers] == list(range(600))
    assert {answer.code for answer in answers} == {ReadCode.OK}
    assert front.plain == [REQUEST]


def test_a_bookie_that_knows_no_batches_is_connected_to_again_with_tls(authority: Authority, tmp_path: Path) -> None:
    bookie = holding(20)
    bookie.knows_batches = False
    with (
        front_of(bookie, authority.issue([HOST]), tmp_path) as (front, address),
        BookieConnection("b0", address, ANSWER_SECONDS) as connection,
    ):
        assert len(entries_of(connection, 19)) == 20
    assert front.plain == [REQUEST, REQUEST]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (NOT_CONFIGURED, "answered NOT_CONFIGURED when asked for TLS"),
        (b"", "closed the connection on a request for TLS"),
        (bytes.fromhex("7fffffff"), "answer to START_TLS: 2147483647 bytes, expected 1024 at most"),
        (bytes.fromhex("00000002 1000"), "answer to START_TLS: field 1 is missing"),
    ],
)
def test_a_bookie_that_offers_no_tls_gets_no_request(authority: Authority, tmp_path: Path, answer: bytes, told: str) -> None:
    with front_of(holding(1), authority.issue([HOST]), tmp_path) as (front, address):
        front.answer = answer
        with pytest.raises(BookieUnreachableError, match=told):
            BookieConnection("b0", address, ANSWER_SECONDS)
    assert [part for part in front.plain if part not in (REQUEST, b"")] == []


def test_a_bookie_under_another_name_or_authority_is_asked_nothing(authority: Authority, stranger: Authority, tmp_path: Path) -> None:
    for issued, told in (
        (authority.issue(["elsewhere.svc"]), "IP address mismatch"),
        (stranger.issue([HOST]), "certificate verify failed"),
    ):
        bookie = holding(1)
        with front_of(bookie, issued, tmp_path) as (_, address), pytest.raises(BookieUnreachableError, match=told):
            BookieConnection("b0", address, ANSWER_SECONDS)
        assert bookie.requests == []


def test_a_bookie_that_refuses_this_certificate_is_reported_as_such(authority: Authority, tmp_path: Path) -> None:
    with front_of(holding(1), authority.issue([HOST]), tmp_path) as (front, address):
        front.says = NOT_LET_IN
        with (
            BookieConnection("b0", address, ANSWER_SECONDS) as connection,
            pytest.raises(BookieUnreachableError, match="answered NOT_LET_IN to this job's certificate"),
        ):
            list(connection.read_entries(4, [0]))


def test_a_renewed_certificate_is_used_for_the_next_connection(authority: Authority, identity: Path, tmp_path: Path) -> None:
    shown: list[bytes] = []
    with front_of(holding(1), authority.issue([HOST]), tmp_path) as (front, address):
        front.take = recording(front, shown)  # type: ignore[method-assign]
        for _ in range(2):
            issued = authority.issue([HOST], "/CN=job")
            hold(identity, issued)
            with BookieConnection("b0", address, ANSWER_SECONDS) as connection:
                list(connection.read_entries(4, [0]))
            assert shown.pop() == ssl.PEM_cert_to_DER_cert(issued.certificate)


def recording(front: Front, shown: list[bytes]) -> Callable[[socket.socket], None]:
    """Works as the front does, and keeps the clients' certificates."""
    wrap = front.context.wrap_socket

    def take(stream: socket.socket) -> None:
        def wrapped(taken: socket.socket, server_side: bool) -> ssl.SSLSocket:
            encrypted = wrap(taken, server_side=server_side)
            shown.append(encrypted.getpeercert(binary_form=True) or b"")
            return encrypted

        front.context.wrap_socket = wrapped  # type: ignore[method-assign]
        Front.take(front, stream)

    return take


def test_a_waiting_reader_is_interrupted(authority: Authority, tmp_path: Path) -> None:
    bookie = holding(1)
    bookie.silent = True
    with (
        front_of(bookie, authority.issue([HOST]), tmp_path) as (_, address),
        BookieConnection("b0", address, ANSWER_SECONDS) as connection,
    ):
        bookie.on_request = connection.interrupt
        with pytest.raises(BookieUnreachableError, match="closed the connection"):
            list(connection.read_entries(4, [0]))
