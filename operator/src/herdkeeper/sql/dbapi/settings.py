"""Where a connection goes, whom to be there, and how patient to be. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict
from urllib.parse import urlsplit

from herdkeeper.sql.connection import DEFAULT_TABLESPACE, Address, Credentials
from herdkeeper.sql.encryption import Encryption
from herdkeeper.sql.leader import Patience

DEFAULT_PORT = 7000
LONGEST_PAUSE_SECONDS = 1.0


class Options(TypedDict, total=False):
    """What `connect` takes by name besides. Times are in seconds."""

    port: int
    """Of those hosts that name none; 7000."""
    autocommit: bool
    """Each statement counts by itself; False."""
    timeout: float
    """How long one statement may take, a COMMIT too; 60."""
    connect_timeout: float
    """How long one server may take to accept a connection; 5."""
    failover_timeout: float
    """How long a leader is looked for; 60."""
    tls: bool
    """The SQL port is encrypted; implied by `authorities`. Without these nobody is verified."""
    authorities: str | None
    """The certificates (PEM) that verify the servers: `ca.crt` of the connection Secret."""
    server_name: str | None
    """The name that the certificate is for, where it is not the host's."""


@dataclass(frozen=True)
class Settings:
    """One of them may lead. `addresses` are in the order in which they are asked first."""

    addresses: tuple[Address, ...]
    tablespace: str
    credentials: Credentials
    patience: Patience


def settings(host: str, credentials: Credentials, tablespace: str | None, options: Options) -> Settings:
    """What the arguments of `connect` mean. `host` is one, or several with commas between them, each with or without a port.

    Raises:
        ValueError: an option that is none, an address that can't be read, or a time that is not above 0.
    """
    unknown = options.keys() - Options.__annotations__.keys()
    if unknown:
        raise ValueError(f"connect has no option {sorted(unknown)[0]!r}: it has {', '.join(sorted(Options.__annotations__))}")
    times = {name: float(options.get(name, default)) for name, default in _TIMES.items()}  # type: ignore[arg-type]
    for name, seconds in times.items():
        if not seconds > 0:
            raise ValueError(f"{name} is {seconds:g}: pass a positive number of seconds")
    patience = Patience(times["failover_timeout"], times["timeout"], LONGEST_PAUSE_SECONDS, times["connect_timeout"])
    addresses = tuple(_address(part.strip(), options) for part in host.split(","))
    return Settings(addresses, tablespace or DEFAULT_TABLESPACE, credentials, patience)


_TIMES = {"timeout": 60.0, "connect_timeout": 5.0, "failover_timeout": 60.0}


def _address(text: str, options: Options) -> Address:
    try:
        parts = urlsplit(f"//{text}")
        name, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"the host {text!r} is no address: pass NAME or NAME:PORT, with commas between several") from error
    if not name or parts.netloc != text or parts.username is not None:
        raise ValueError(f"the host {text!r} is no address: pass NAME or NAME:PORT, with commas between several")
    authorities = options.get("authorities")
    encrypted = options.get("tls", authorities is not None)
    if authorities is not None and not encrypted:
        raise ValueError("authorities are given and tls is False: leave out one of the two")
    encryption = Encryption(options.get("server_name") or name, authorities) if encrypted else None
    return Address(name, port or options.get("port", DEFAULT_PORT), encryption)
