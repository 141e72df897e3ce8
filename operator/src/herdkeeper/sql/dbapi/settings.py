"""Settings of a connection: where to connect, as whom, and with which timeouts. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict
from urllib.parse import urlsplit

from herdkeeper.sql.connection import DEFAULT_TABLESPACE, Address, Credentials
from herdkeeper.sql.encryption import Encryption
from herdkeeper.sql.leader import Patience

DEFAULT_PORT = 7000
LONGEST_PAUSE_SECONDS = 1.0
_TIMES = {"timeout": 60.0, "connect_timeout": 5.0, "failover_timeout": 60.0}
"""The options that are times, with their defaults in seconds."""


class Options(TypedDict, total=False):
    """Keyword options of `connect`. Times are in seconds."""

    port: int
    """Port of the hosts that name none; 7000."""
    autocommit: bool
    """Each statement commits by itself; False."""
    timeout: float
    """Maximum duration of one statement, including COMMIT; 60."""
    connect_timeout: float
    """Maximum time for a server to accept a connection; 5."""
    failover_timeout: float
    """How long to search for a leader; 60."""
    tls: bool
    """Use TLS; implied by `authorities`. Without these, servers are not verified."""
    authorities: str | None
    """The certificates (PEM) that verify the servers: `ca.crt` of the connection Secret."""
    server_name: str | None
    """The name in the certificate, if it is not the host's."""


@dataclass(frozen=True)
class Settings:
    """One of the addresses may lead. They are in the order of the first attempts."""

    addresses: tuple[Address, ...]
    tablespace: str
    credentials: Credentials
    patience: Patience


def settings(host: str, credentials: Credentials, tablespace: str | None, options: Options) -> Settings:
    """Returns the meaning of `connect`'s arguments. `host` is one, or several with commas, each with or without a port.

    Raises:
        ValueError: an unknown option, an invalid address, or a time that is not positive.
    """
    unknown = options.keys() - Options.__annotations__.keys()
    if unknown:
        raise ValueError(f"connect has no option {sorted(unknown)[0]!r}: it has {', '.join(sorted(Options.__annotations__))}")
    times = {name: float(options.get(name, default)) for name, default in _TIMES.items()}  # type: ignore[arg-type]
    for name, seconds in times.items():
        if not seconds > 0:
            raise ValueError(f"{name} is {seconds:g}: pass a positive number of seconds")
    if "@" in host:
        raise ValueError("the host has an @, as a URL with a password has: pass NAME or NAME:PORT, and user and password by themselves")
    patience = Patience(times["failover_timeout"], times["timeout"], LONGEST_PAUSE_SECONDS, times["connect_timeout"])
    addresses = tuple(_address(part.strip(), options) for part in host.split(","))
    return Settings(addresses, tablespace or DEFAULT_TABLESPACE, credentials, patience)


def _address(text: str, options: Options) -> Address:
    try:
        parts = urlsplit(f"//{text}")
        name, port = parts.hostname if parts.netloc == text else None, parts.port
    except ValueError:
        name, port = None, None
    if not name:
        raise ValueError(f"the host {text!r} is no address: pass NAME or NAME:PORT, with commas between several")
    authorities = options.get("authorities")
    encrypted = options.get("tls", authorities is not None)
    if authorities is not None and not encrypted:
        raise ValueError("authorities are given and tls is False: remove one of the two")
    if options.get("server_name") and not encrypted:
        raise ValueError("server_name is given without TLS: pass authorities, or tls=True, or the password would go in plain text")
    encryption = Encryption(options.get("server_name") or name, authorities) if encrypted else None
    return Address(name, port or options.get("port", DEFAULT_PORT), encryption)
