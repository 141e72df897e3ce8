"""TLS between this client and a SQL node, with the certificate that a HerdDBCluster's `spec.tls` names."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[\x00-\x7f]*?-----END CERTIFICATE-----")


@dataclass(frozen=True)
class Encryption:
    """`server_name` is the host name that the node's certificate must be for, also where the node is reached under another one.

    `authorities` are the certificates (PEM) by which it is verified. With None it is not, as HerdDB's own driver never does: nobody can
    listen, but whoever stands in between can pretend to be the node.
    """

    server_name: str
    authorities: str | None


def client_context(authorities: str | None) -> ssl.SSLContext:
    """A client's side of TLS that trusts these certificates (PEM), and no others that the machine knows; None: whatever it is shown.

    An authority that another one signed counts, too: `ca.crt` says whom to trust, not how far up that goes. What stands between the
    certificates is skipped: bundles have comments, in any language.

    Raises:
        ssl.SSLError: `authorities` holds no certificate, or one that is damaged.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if authorities is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    certificates = _CERTIFICATE.findall(authorities)
    if not certificates:
        raise ssl.SSLError("none was found")
    context.load_verify_locations(cadata="\n".join(certificates))
    return context
