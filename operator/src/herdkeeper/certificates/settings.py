"""Settings by which servers authenticate each other with certificates. `folder` is the mount path of a server's Secret.

Keys: ZooKeeper's administrator guide, 3.9; BookKeeper's bk_server.conf, 4.18. Proven with real servers by
spark-jobs/tests/integration/test_*_certificates.py.
"""

from __future__ import annotations

from herdkeeper.shared import names

KEY_STORE_KEY = "keystore.pem"
"""In the Secret: key and certificate in one file, as ZooKeeper reads them."""
_TLS_VERSION = "TLSv1.3"
_CIPHERS = "TLS_AES_256_GCM_SHA384,TLS_AES_128_GCM_SHA256"
_REFRESH_SECONDS = 10
"""BookKeeper's maximum age of loaded files at the next connection."""


def member_lines(clients: str, members: str, port: int, *, use: bool = True, plaintext: bool = False) -> dict[str, object]:
    """Lines of zoo.cfg. `clients` and `members` are the folders of the Secrets for the client port `port` and for the quorum, `use` and
    `plaintext` as in quorum_lines(). Every holder of a certificate of the quorum's authority is a member (host names are not compared), so
    that authority differs from the clients'.
    """
    return {**client_port_lines(clients, port), **quorum_lines(members, use=use, plaintext=plaintext)}


def client_port_lines(folder: str, port: int) -> dict[str, object]:
    """Lines of zoo.cfg for the port that requires certificates."""
    return {
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "secureClientPort": port,
        "ssl.clientAuth": "need",
        **_stores(folder, "ssl."),
    }


def quorum_lines(folder: str, *, use: bool = True, plaintext: bool = False) -> dict[str, object]:
    """Lines of zoo.cfg for the ports of members: whether a member `use`s TLS to others, and also accepts `plaintext` from them."""
    both = {"sslQuorum": str(use).lower(), "portUnification": str(plaintext).lower()}
    return {**both, "ssl.quorum.clientAuth": "need", **_stores(folder, "ssl.quorum.")}


def zookeeper_client_options(folder: str) -> tuple[str, ...]:
    """JVM options: its ZooKeeper client connects with this certificate."""
    settings = {
        "zookeeper.client.secure": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        **_stores(folder, "zookeeper.ssl."),
    }
    return tuple(f"-D{key}={value}" for key, value in settings.items())


def bookkeeper_lines(folder: str) -> dict[str, object]:
    """Lines of a bookie, autorecovery and BookKeeper's client: they present certificates and verify them with the host name."""
    return {
        "tlsProviderFactoryClass": "org.apache.bookkeeper.tls.TLSContextFactory",
        "tlsClientAuthentication": "true",
        "tlsHostnameVerificationEnabled": "true",
        "tlsEnabledProtocols": _TLS_VERSION,
        "tlsKeyStoreType": "PEM",
        "tlsKeyStore": f"{folder}/{names.PRIVATE_KEY_KEY}",
        "tlsCertificatePath": f"{folder}/{names.CERTIFICATE_KEY}",
        "tlsTrustStoreType": "PEM",
        "tlsTrustStore": f"{folder}/{names.AUTHORITIES_KEY}",
        "tlsCertFilesRefreshDurationSeconds": _REFRESH_SECONDS,
    }


def bookie_lines(cluster: str) -> dict[str, object]:
    """Further lines of a bookie: without these TLS is optional, and requests in plain text are served. `cluster` is what certificates may
    use. The image's entry point replaces the factory by its own, TlsRequiredFactory, which earlier images lack.
    """
    return {
        "bookieAuthProviderFactoryClass": "org.apache.bookkeeper.tls.BookieAuthZFactory",
        "authorizedRoles": cluster,
    }


def _stores(folder: str, prefix: str) -> dict[str, object]:
    """ZooKeeper's files and TLS versions. Its client in SQL nodes (3.9.1) starts with 1.2 and has no 1.3 ciphers unless configured; its
    server (3.9.5) accepts only 1.3.
    """
    return {
        f"{prefix}keyStore.location": f"{folder}/{KEY_STORE_KEY}",
        f"{prefix}keyStore.type": "PEM",
        f"{prefix}trustStore.location": f"{folder}/{names.AUTHORITIES_KEY}",
        f"{prefix}trustStore.type": "PEM",
        f"{prefix}enabledProtocols": _TLS_VERSION,
        f"{prefix}ciphersuites": _CIPHERS,
    }
