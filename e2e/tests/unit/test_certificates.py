"""Certificates are such that nodes can serve with them and clients verify them, and only by their own authority."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from herdkeeper.herddb.observe.tls import judged
from herdkeeper.herddb.state.tls import TlsUsable
from herdkeeper.shared.problem import Problem
from herdkeeper_e2e.certificates import Authority, Issued
from herdkeeper_e2e.tls_probe import shown_certificate

NODES = [f"db-herddb-{number}.db-herddb-nodes.e2e.svc" for number in range(2)]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "the authority of a test")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"), "a stranger")


def values(issued: Issued) -> dict[str, str]:
    return {key: base64.b64decode(text).decode() for key, text in issued.secret("db-tls")["data"].items()}


@contextmanager
def serving(issued: Issued, folder: Path) -> Iterator[int]:
    """A server that shakes hands with whoever comes, at this port."""
    pem = folder / "served.pem"
    pem.write_text(issued.certificate + issued.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)

    def serve(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                stream, _ = listener.accept()
                with suppress(OSError), context.wrap_socket(stream, server_side=True) as encrypted:
                    encrypted.recv(1)

    with socket.create_server(("localhost", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        yield int(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)  # else it would go on waiting for the next one


def test_the_operator_finds_each_nodes_certificate_good(authority):
    issued = authority.issue(["*.db-herddb-nodes.e2e.svc", "*.e2e.svc"])
    assert isinstance(judged("db-tls", values(issued), [*NODES, "flights-leader.e2e.svc"]), TlsUsable)
    assert isinstance(judged("db-tls", values(issued), ["db-herddb-0.db-herddb-nodes.other.svc"]), Problem)


def test_a_renewed_certificate_is_another_one_of_the_same_authority(authority):
    first, second = (authority.issue(NODES) for _ in range(2))
    assert first.fingerprint != second.fingerprint
    assert isinstance(judged("db-tls", values(second) | {"ca.crt": first.authority}, NODES), TlsUsable)


@pytest.mark.timeout(60)
def test_what_a_server_shows_is_verified_by_its_name_and_authority(authority, stranger, tmp_path):
    issued = authority.issue(["localhost"])
    with serving(issued, tmp_path) as port:
        assert shown_certificate("localhost", port, authority.certificate) == issued.fingerprint
        with pytest.raises(ssl.SSLCertVerificationError):
            shown_certificate("localhost", port, stranger.certificate)
        with pytest.raises(ssl.SSLCertVerificationError):
            shown_certificate("127.0.0.1", port, authority.certificate)
