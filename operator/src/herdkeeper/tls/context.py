"""Contexts of a client's side of TLS."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from herdkeeper.tls.identity import Identity

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


def mutual_context(identity: Identity) -> ssl.SSLContext:
    """The same for a client that shows who it is.

    Raises:
        ssl.SSLError: the authorities, the certificate or its key are damaged, or the key is another certificate's.
    """
    context = client_context(identity.authorities)
    load_certificate(context, identity.certificate, identity.key)
    return context


def load_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Has a context show a certificate; both in PEM, the key without a password. Raises ssl.SSLError."""
    with _in_memory(f"{certificate}\n{key}\n") as path:
        context.load_cert_chain(path, password=lambda: "")


@contextmanager
def _in_memory(text: str) -> Iterator[str]:
    """A path to a file that is on no disk: OpenSSL insists on one."""
    descriptor = os.memfd_create("tls")
    try:
        os.write(descriptor, text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
