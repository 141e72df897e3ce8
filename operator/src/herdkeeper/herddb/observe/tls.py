"""Checks the Secret with the certificate of a HerdDBCluster's SQL port, by doing what a node and a client would do with it.

Both ends of the handshake are in memory.
"""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Iterable, Mapping

from herdkeeper.api import HerdDBCluster
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.codecs.authorities import client_context
from herdkeeper.herddb.state.log_store import LogStore
from herdkeeper.herddb.state.nodes import staying_nodes
from herdkeeper.herddb.state.tls import TlsUsable, tls_of
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.tls.context import load_certificate

KEYS = (names.CERTIFICATE_KEY, names.PRIVATE_KEY_KEY, names.AUTHORITIES_KEY)
_MOST_FLIGHTS = 10
"""A handshake of TLS 1.2 or 1.3 takes two or three flights. This only ends an endless one."""


def read_tls(cluster: HerdDBCluster, log: LogStore, reader: ClusterReader) -> TlsUsable | Problem | None:
    """Returns whether the Secret of the SQL port is usable for TLS. None if the port is not encrypted."""
    tls = tls_of(cluster, log)
    if tls is None:
        return None
    values = reader.kubernetes.secret(ObjectKey(cluster.metadata.namespace, tls.secret_name))
    if values is None:
        by_operator = log.asks_for_certificates and tls.secret_name == cluster.names.identity_secret
        remedy = "the operator creates it" if by_operator else f"spec.tls.secretName is {tls.secret_name}; create it"
        return Problem(Reason.WAITING_FOR_SECRET, f"the Secret {tls.secret_name} does not exist: {remedy}")
    hosts = [cluster.names.host_of(node) for node in staying_nodes(cluster)]
    return judged(tls.secret_name, values, hosts)


def judged(secret: str, values: Mapping[str, str], hosts: Iterable[str]) -> TlsUsable | Problem:
    """Returns whether nodes under these host names can serve with the Secret's content."""
    missing = [key for key in KEYS if not values.get(key)]
    if missing:
        why = f"the Secret {secret} lacks {' and '.join(missing)}: add it ({names.AUTHORITIES_KEY}: the certificates that clients trust)"
        return Problem(Reason.WAITING_FOR_SECRET, why)
    certificate, key, authorities = (values[each] for each in KEYS)
    try:
        client = client_context(authorities)
    except ssl.SSLError as error:
        return _refused(secret, names.AUTHORITIES_KEY, f"holds no certificates in PEM ({_openssl_reason(error)})")
    try:
        server = _server_context(certificate, key)
    except ssl.SSLError as error:
        what = f"{names.CERTIFICATE_KEY} and {names.PRIVATE_KEY_KEY}"
        return _refused(secret, what, f"are no certificate in PEM and its key without a password ({_openssl_reason(error)})")
    expires = None
    for host in hosts:
        try:
            expires = _shake_hands(client, server, host)
        except ssl.SSLCertVerificationError as error:
            what = f"can't be verified by {names.AUTHORITIES_KEY} as the certificate of {host}: {error.verify_message}"
            return _refused(secret, names.CERTIFICATE_KEY, what)
        except ssl.SSLError as error:
            return _refused(secret, names.CERTIFICATE_KEY, f"is unusable for a server: {_openssl_reason(error)}")
    return TlsUsable(secret, authorities, expires)


def _refused(secret: str, key: str, what: str) -> Problem:
    return Problem(Reason.INVALID_SECRET, f"the Secret {secret}: {key} {what}")


def _openssl_reason(error: ssl.SSLError) -> str:
    """OpenSSL's own reason, if there is one."""
    return getattr(error, "reason", None) or str(error)


def _server_context(certificate: str, key: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_certificate(context, certificate, key)
    return context


def _shake_hands(client_side: ssl.SSLContext, server_side: ssl.SSLContext, host: str) -> datetime.datetime:
    """Returns when the server's certificate expires. Raises the client's error."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_side.wrap_bio(to_client, to_server, server_hostname=host)
    server = server_side.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(_MOST_FLIGHTS):
        try:
            client.do_handshake()
        except ssl.SSLWantReadError:
            pass
        else:
            (until,) = [value for name, value in (client.getpeercert() or {}).items() if name == "notAfter"]
            return datetime.datetime.fromtimestamp(ssl.cert_time_to_seconds(str(until)), datetime.UTC)
        try:
            server.do_handshake()
        except ssl.SSLWantReadError:
            continue
    raise ssl.SSLError(f"no end of the handshake after {_MOST_FLIGHTS} flights")
