"""TLS between this client and a SQL node, with the certificate that a HerdDBCluster's `spec.tls` names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Encryption:
    """`server_name` is the host name that the node's certificate must be for, also where the node is reached under another one.

    `authorities` are the certificates (PEM) by which it is verified. With None it is not, as HerdDB's own driver never does: nobody can
    listen, but whoever stands in between can pretend to be the node.
    """

    server_name: str
    authorities: str | None
