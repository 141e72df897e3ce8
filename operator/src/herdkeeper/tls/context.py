"""TLS client contexts."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from herdkeeper.codecs.authorities import client_context
from herdkeeper.tls.identity import Identity

_LONGEST_KEY = 8192
"""Characters, as of an RSA key of 8192 bits. Numbers without a bound would take hours."""


def mutual_context(identity: Identity) -> ssl.SSLContext:
    """Returns a TLS client context that trusts the identity's authorities, and presents it. Raises ssl.SSLError for damaged parts."""
    context = client_context(identity.authorities)
    load_certificate(context, identity.certificate, identity.key)
    return context


def load_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Make a context present a certificate; both in PEM, the key without a password. Raises ssl.SSLError."""
    if len(key) > _LONGEST_KEY:
        raise ssl.SSLError(ssl.SSL_ERROR_SSL, f"the key has more than {_LONGEST_KEY} characters")
    with _in_memory(certificate) as chain, _in_memory(key) as private:
        context.load_cert_chain(chain, private, password=_refuse_password)


def _refuse_password() -> str:
    """An empty password would be tried, which takes as long as the key says."""
    raise ssl.SSLError(ssl.SSL_ERROR_SSL, "the key has a password")


@contextmanager
def _in_memory(text: str) -> Iterator[str]:
    """Yields a path to an in-memory file, since OpenSSL requires a path."""
    descriptor = os.memfd_create("tls")
    try:
        os.write(descriptor, text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
