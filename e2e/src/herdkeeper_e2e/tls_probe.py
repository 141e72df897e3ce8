"""Prints how SQL nodes serve clients, inside the cluster: `python3 -m herdkeeper_e2e.tls_probe HOST…`, with the authorities' certificates
(PEM) on standard input.

Logs in to each over TLS, verified with the node's name, and again without TLS. Prints a line of JSON per node: its certificate, and whether
plaintext was served. Exits with 1 if a node can't be verified.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import socket
import ssl
import sys
from dataclasses import asdict, dataclass

from herdkeeper.codecs.authorities import client_context
from herdkeeper.sql.connection import Address, Connection, Credentials
from herdkeeper.sql.encryption import Encryption
from herdkeeper.sql.errors import ConnectionLost
from herdkeeper_e2e.session import open_session

PORT = 7000
TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True)
class Spoken:
    """Behaviour of a node. `refused` is the error of a login without TLS; None if it was served."""

    host: str
    certificate: str
    refused: str | None


def fingerprint(certificate: bytes) -> str:
    """SHA-256 of a certificate in DER, as hexadecimal digits."""
    return hashlib.sha256(certificate).hexdigest()


def shown_certificate(host: str, port: int, authorities: str) -> str:
    """Returns the fingerprint of the node's certificate, verified with its name. Raises ssl.SSLError, OSError."""
    with (
        socket.create_connection((host, port), TIMEOUT_SECONDS) as stream,
        client_context(authorities).wrap_socket(stream, server_hostname=host) as encrypted,
    ):
        shown = encrypted.getpeercert(binary_form=True)
    if shown is None:
        raise ssl.SSLError(f"{host} showed no certificate")
    return fingerprint(shown)


def spoken(host: str, authorities: str, credentials: Credentials) -> Spoken:
    """Probe a node. Raises ssl.SSLError, OSError, SqlError if it does not serve TLS that these authorities verify."""
    certificate = shown_certificate(host, PORT, authorities)
    Connection.connect(Address(host, PORT, Encryption(host, authorities)), credentials, timeout_seconds=TIMEOUT_SECONDS).close()
    try:
        Connection.connect(Address(host, PORT), credentials, timeout_seconds=TIMEOUT_SECONDS).close()
    except ConnectionLost as error:
        return Spoken(host, certificate, str(error))
    return Spoken(host, certificate, None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hosts", nargs="+", metavar="HOST")
    arguments = parser.parse_args()
    authorities = sys.stdin.read()
    with open_session() as session:
        for host in arguments.hosts:
            print(json.dumps(asdict(spoken(host, authorities, session.credentials))))


if __name__ == "__main__":
    main()
