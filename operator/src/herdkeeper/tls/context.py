"""TLS client contexts."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from herdkeeper.codecs.authorities import client_context
from herdkeeper.tls.identity import Identity


def mutual_context(identity: Identity) -> ssl.SSLContext:
    """Returns a TLS client context that trusts the identity's authorities, and presents the identity.

    Raises ssl.SSLError if authorities, certificate or key are damaged, or don't match.
    """
    context = client_context(identity.authorities)
    load_certificate(context, identity.certificate, identity.key)
    return context


def load_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Make a context present a certificate; both in PEM, the key without a password. Raises ssl.SSLError."""
    with _in_memory(f"{certificate}\n{key}\n") as path:
        context.load_cert_chain(path, password=lambda: "")


@contextmanager
def _in_memory(text: str) -> Iterator[str]:
    """Yields a path to an in-memory file, since OpenSSL requires a path."""
    descriptor = os.memfd_create("tls")
    try:
        os.write(descriptor, text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
