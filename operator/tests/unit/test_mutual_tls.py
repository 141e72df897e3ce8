"""A client that shows a certificate: what it makes of its files, whom it trusts, and how kazoo gets there."""

from __future__ import annotations

import pickle
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from herdkeeper.tls.context import load_certificate, mutual_context
from herdkeeper.tls.identity import Identity, MountedIdentity
from herdkeeper.tls.kazoo_handler import MutualTlsHandler

CERTIFICATES = Path(__file__).parents[3] / "images/herddb/src/test/resources/tls"
NAME = "db-herddb-0.db-herddb-nodes.demo.svc"
ANSWER_SECONDS = 120.0


def content(name: str) -> str:
    return (CERTIFICATES / name).read_text()


def identity(authorities: str = "authority.crt", key: str = "node-pkcs8.key") -> Identity:
    return Identity(content("node.crt"), content(key), content(authorities))


@contextmanager
def server(says: bytes) -> Iterator[tuple[str, int]]:
    """Asks whoever comes for a certificate, and says something in one TLS record."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_certificate(context, content("node.crt"), content("node-pkcs8.key"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=content("authority.crt"))

    def accept(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                stream, _ = listener.accept()
                with suppress(OSError), context.wrap_socket(stream, server_side=True) as encrypted:
                    encrypted.sendall(says)
                    encrypted.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        yield listener.getsockname()
        listener.shutdown(socket.SHUT_RDWR)


def test_a_certificate_that_cannot_be_read_is_why_nobody_connects() -> None:
    def missing() -> Identity:
        raise OSError("the Secret zk-zookeeper-operator lacks tls.key")

    handler = MutualTlsHandler(missing)
    with pytest.raises(OSError, match=r"lacks tls\.key"):
        handler.create_connection(("127.0.0.1", 1), "zk-0", 1.0)
    assert handler.refused == "the Secret zk-zookeeper-operator lacks tls.key"


def test_an_answer_that_is_decrypted_already_is_not_waited_for() -> None:
    handler = MutualTlsHandler(identity)
    quiet, _other = socket.socketpair()
    with server(b"onetwo") as address, handler.create_connection(address, NAME, ANSWER_SECONDS) as encrypted, quiet, _other:
        assert handler.select([encrypted, quiet], [], [], ANSWER_SECONDS)[0] == [encrypted]
        assert encrypted.recv(3) == b"one"
        assert handler.select([encrypted, quiet], [], [], 1000.0)[0] == [encrypted]
        _other.sendall(b"x")
        assert handler.select([encrypted, quiet], [], [], 1000.0)[0] == [encrypted, quiet]
        assert encrypted.recv(3) == b"two"
        assert handler.select([encrypted, quiet], [], [], 1000.0)[0] == [quiet]


@pytest.mark.parametrize(
    ("authorities", "name", "told"),
    [("stranger.crt", NAME, "certificate verify failed"), ("authority.crt", "zk-0.elsewhere.svc", "Hostname mismatch")],
)
def test_a_member_of_another_authority_or_name_is_not_connected_to(authorities: str, name: str, told: str) -> None:
    handler = MutualTlsHandler(lambda: identity(authorities))
    with server(b"") as address, pytest.raises(ssl.SSLCertVerificationError, match=told):
        handler.create_connection(address, name, ANSWER_SECONDS)
    assert told in str(handler.refused)


def test_files_that_can_not_be_used_are_an_error_of_the_connection(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        MutualTlsHandler(MountedIdentity(str(tmp_path))).create_connection(("127.0.0.1", 1), NAME)
    for name in ("tls.crt", "tls.key", "ca.crt"):
        (tmp_path / name).write_bytes(b"\xff")
    with pytest.raises(OSError, match="utf-8"):
        MutualTlsHandler(MountedIdentity(str(tmp_path))).create_connection(("127.0.0.1", 1), NAME)


def test_a_mounted_identity_is_read_anew_each_time_also_in_an_executor(tmp_path: Path) -> None:
    mounted = pickle.loads(pickle.dumps(MountedIdentity(str(tmp_path))))
    for first in ("old", "new"):
        for name in ("tls.crt", "tls.key", "ca.crt"):
            (tmp_path / name).write_text(f"{first} {name}")
        assert mounted() == Identity(f"{first} tls.crt", f"{first} tls.key", f"{first} ca.crt")


def test_a_key_is_not_shown() -> None:
    assert "PRIVATE" not in repr(identity())


def test_a_key_of_another_certificate_is_refused() -> None:
    with pytest.raises(ssl.SSLError):
        mutual_context(identity(key="curve-pkcs8.key"))
