"""What servers are told so that they know one another by certificates. `folder` is where the Secret of one of them is mounted.

Keys: ZooKeeper's administrator guide, 3.9; BookKeeper's bk_server.conf, 4.18. Proven with real servers by
spark-jobs/tests/integration/test_*_certificates.py.
"""

from __future__ import annotations

from herdkeeper.shared import names

KEY_STORE_KEY = "keystore.pem"
"""Of the Secret: key and certificate in one file, as ZooKeeper reads them."""
_TLS_VERSION = "TLSv1.3"
_CIPHERS = "TLS_AES_256_GCM_SHA384,TLS_AES_128_GCM_SHA256"
_REFRESH_SECONDS = 10
"""BookKeeper's: how old what it has read may be when it makes the next connection."""


def member_lines(clients: str, members: str, port: int) -> dict[str, object]:
    """Of zoo.cfg. `clients` and `members` are the folders of the Secrets for the client port `port` and for the quorum: whoever has a
    certificate of the quorum's authority is a member (no host name is compared), so it is another authority than the clients'."""
    return {**client_port_lines(clients, port), **quorum_lines(members)}


def client_port_lines(folder: str, port: int) -> dict[str, object]:
    """Of zoo.cfg, for the port that serves nobody without a certificate."""
    return {
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "secureClientPort": port,
        "ssl.clientAuth": "need",
        **_stores(folder, "ssl."),
    }


def quorum_lines(folder: str) -> dict[str, object]:
    """Of zoo.cfg, for the ports of members, which take no plain text."""
    return {"sslQuorum": "true", "portUnification": "false", "ssl.quorum.clientAuth": "need", **_stores(folder, "ssl.quorum.")}


def zookeeper_client_options(folder: str) -> tuple[str, ...]:
    """Of a JVM: ZooKeeper's client in it connects with this certificate."""
    settings = {
        "zookeeper.client.secure": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        **_stores(folder, "zookeeper.ssl."),
    }
    return tuple(f"-D{key}={value}" for key, value in settings.items())


def bookkeeper_lines(folder: str) -> dict[str, object]:
    """Of a bookie, of autorecovery, and of BookKeeper's client: certificates are shown and verified, under the host's name."""
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
    """Of a bookie besides: without these TLS is an offer, and plain requests are served. `cluster` is what certificates may use."""
    return {
        "bookieAuthProviderFactoryClass": "org.apache.bookkeeper.tls.BookieAuthZFactory",
        "authorizedRoles": cluster,
    }


def _stores(folder: str, prefix: str) -> dict[str, object]:
    """ZooKeeper's files and version of TLS: its client in SQL nodes (3.9.1) begins with 1.2 and knows no ciphers of 1.3 unless told, its
    server (3.9.5) takes 1.3 alone."""
    return {
        f"{prefix}keyStore.location": f"{folder}/{KEY_STORE_KEY}",
        f"{prefix}keyStore.type": "PEM",
        f"{prefix}trustStore.location": f"{folder}/{names.AUTHORITIES_KEY}",
        f"{prefix}trustStore.type": "PEM",
        f"{prefix}enabledProtocols": _TLS_VERSION,
        f"{prefix}ciphersuites": _CIPHERS,
    }
