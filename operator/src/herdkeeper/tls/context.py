"""Contexts of a client's side of TLS."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from herdkeeper.codecs.authorities import client_context
from herdkeeper.tls.identity import Identity


def mutual_context(identity: Identity) -> ssl.SSLContext:
    """A client's side of TLS that trusts the identity's authorities, and shows the identity.

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
