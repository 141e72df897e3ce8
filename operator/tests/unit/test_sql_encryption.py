"""The SQL client against a node that speaks TLS, played by a thread with a real certificate."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from test_sql_connection import CREDENTIALS, chunk, serve

from herdkeeper.sql.connection import Address, Connection
from herdkeeper.sql.encryption import Encryption
from herdkeeper.sql.errors import ConnectionLost
from herdkeeper.sql.frames import MessageType

CERTIFICATES = Path(__file__).parents[3] / "images/herddb/src/test/resources/tls"
NAME = "db-herddb-0.db-herddb-nodes.demo.svc"
TABLE = [["a", 1], ["b" * 100_000, 2]]


def authority(name: str = "authority.crt") -> str:
    return (CERTIFICATES / name).read_text()


def answered(kind: int, body: bytes) -> tuple[MessageType, bytes]:
    return chunk(TABLE, last=True)


@contextmanager
def node_with_tls(log: list[tuple[int, bytes]], certificate: str = "node.crt") -> Iterator[Address]:
    """What it answers is too much for one TLS record. `log` gets the requests."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / certificate, CERTIFICATES / "node-pkcs8.key")
    with context.wrap_socket(socket.create_server(("127.0.0.1", 0)), server_side=True) as listener:

        def accept() -> None:
            with suppress(OSError):  # the handshake that a client breaks off
                serve(listener, answered, log)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield Address("127.0.0.1", listener.getsockname()[1])
        thread.join(60)


def connect(address: Address, encryption: Encryption, seconds: float = 60) -> Connection:
    return Connection.connect(Address(address.host, address.port, encryption), CREDENTIALS, timeout_seconds=seconds)


@pytest.mark.parametrize("authorities", [authority(), authority("stranger.crt") + authority()])
def test_rows_come_from_a_node_whose_certificate_one_of_the_authorities_signed(authorities: str) -> None:
    log: list[tuple[int, bytes]] = []
    with node_with_tls(log) as address, connect(address, Encryption(NAME, authorities)) as connection:
        assert [list(row.values()) for row in connection.query("SELECT k,v FROM t")] == TABLE
    assert log[0][0] == MessageType.SASL_REQUEST


@pytest.mark.parametrize(
    ("certificate", "encryption", "told"),
    [
        ("node.crt", Encryption(NAME, authority("stranger.crt")), "unable to get local issuer certificate"),
        ("node.crt", Encryption("elsewhere.svc", authority()), "certificate is not valid for 'elsewhere.svc'"),
        ("expired.crt", Encryption(NAME, authority()), "certificate has expired"),
    ],
)
def test_the_password_is_not_sent_to_a_node_that_cannot_be_verified(certificate: str, encryption: Encryption, told: str) -> None:
    log: list[tuple[int, bytes]] = []
    with node_with_tls(log, certificate) as address, pytest.raises(ConnectionLost, match=told):
        connect(address, encryption)
    assert log == []


def test_without_authorities_a_strangers_certificate_is_taken() -> None:
    with node_with_tls([], "expired.crt") as address, connect(address, Encryption("elsewhere.svc", None)) as connection:
        assert len(connection.query("SELECT k,v FROM t")) == len(TABLE)


def test_a_node_that_answers_no_tls_is_given_up_in_time_and_the_password_is_not_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(ConnectionLost, match="does it speak TLS"):
        connect(Address("127.0.0.1", silent.getsockname()[1]), Encryption(NAME, authority()), 0.2)


def test_a_node_that_hangs_up_on_tls_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            listener.accept()[0].close()

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        with pytest.raises(ConnectionLost, match="cannot connect by TLS"):
            connect(Address("127.0.0.1", listener.getsockname()[1]), Encryption(NAME, authority()))
        thread.join(60)
