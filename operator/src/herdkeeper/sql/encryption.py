"""TLS between this client and a SQL node, with the certificate of its SQL port."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Encryption:
    """`server_name` is the host name that the node's certificate must have, whatever the address.

    `authorities` are the certificates (PEM) that verify it. With None it is not verified, like in HerdDB's own driver: eavesdropping is
    impossible, but impersonation is not.
    """

    server_name: str
    authorities: str | None
