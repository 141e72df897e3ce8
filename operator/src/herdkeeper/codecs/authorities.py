"""Bundles of PEM certificates, and a TLS client context that trusts them."""

from __future__ import annotations

import re
import ssl

_BEGIN = "-----BEGIN CERTIFICATE-----"
_CERTIFICATE = re.compile(_BEGIN + r"[\x00-\x2c\x2e-\x7f]*-----END CERTIFICATE-----")
"""Without `-` in between: one that is begun and never ended would be looked for up to the end of the text, each one again."""


def client_context(authorities: str | None, least: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2) -> ssl.SSLContext:
    """Returns a TLS client context that trusts only these certificates (PEM); None: it verifies nothing. `least`: the lowest version.

    An intermediate authority counts, too: `ca.crt` says whom to trust, not up to which root. Text between the certificates, such as
    comments in any language, is skipped.

    Raises ssl.SSLError if `authorities` has no certificate, or a damaged one.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = least
    if authorities is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    certificates = _CERTIFICATE.findall(authorities)
    if not certificates:
        raise ssl.SSLError(ssl.SSL_ERROR_SSL, "none was found")
    if len(certificates) < authorities.count(_BEGIN):
        raise ssl.SSLError(ssl.SSL_ERROR_SSL, "one is damaged")
    context.load_verify_locations(cadata="\n".join(certificates))
    return context
