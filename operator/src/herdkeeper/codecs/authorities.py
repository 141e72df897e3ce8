"""Bundles of certificates in PEM, and a client's side of TLS that trusts them."""

from __future__ import annotations

import re
import ssl

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[\x00-\x7f]*?-----END CERTIFICATE-----")


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
