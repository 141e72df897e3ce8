"""Configuration keys that the operator owns: a user's `spec.config` may not set them.

A key is owned if identity, durability or an object of the operator (port, path, probe) depends on it. So is one that a field of the spec
sets. Each key maps to that field, or to None. Defaults that a builder writes, e.g. ZooKeeper's `autopurge.snapRetainCount` or HerdDB's
`server.checkpoint.period`, are not owned: the user's line comes later and wins. Key names are from ZooKeeper's administrator guide,
BookKeeper's `bk_server.conf` and HerdDB's `ServerConfiguration`. The validation reads this table; add each further owned key that a builder
writes.
"""

from __future__ import annotations

from collections.abc import Mapping

OwnedKeys = Mapping[str, str | None]


def _of_operator(keys: str) -> dict[str, str | None]:
    """Returns keys that no field of the spec sets."""
    return dict.fromkeys(keys.split())


_CERTIFICATES: OwnedKeys = _of_operator("""
    clientAuthProviderFactoryClass clientKeyStore clientKeyStorePasswordPath clientKeyStoreType clientTrustStore
    clientTrustStorePasswordPath clientTrustStoreType tlsCertFilesRefreshDurationSeconds tlsCertificatePath
    tlsClientAuthentication tlsEnabledProtocols tlsHostnameVerificationEnabled tlsKeyStore tlsKeyStorePasswordPath
    tlsKeyStoreType tlsProviderFactoryClass tlsTrustStore tlsTrustStorePasswordPath tlsTrustStoreType
""")
"""How BookKeeper's servers and clients authenticate each other. Its client prefers the older names `client…Store…` to `tls…Store…`."""

_PLACEMENT: OwnedKeys = {
    **_of_operator("""
        ensemblePlacementPolicy ignoreLocalNodeInPlacementPolicy networkTopologyScriptFileName reppDnsResolverClass
    """),
    "minNumRacksPerWriteQuorum": "spec.placement.minRacksPerWriteQuorum",
    "enforceMinNumRacksPerWriteQuorum": "spec.placement.enforced",
}
"""Settings that must be equal in both of BookKeeper's clients, SQL nodes and autorecovery."""

ZOOKEEPER: OwnedKeys = _of_operator("""
    4lw.commands.whitelist DigestAuthenticationProvider.digestAlg DigestAuthenticationProvider.enabled
    DigestAuthenticationProvider.superDigest X509AuthenticationProvider.superUser admin.commandURL admin.enableServer
    admin.forceHttps admin.portUnification admin.restore.enabled admin.serverAddress admin.serverPort admin.snapshot.enabled
    client.portUnification clientPort clientPortAddress dataDir dataLogDir db.autocreate dynamicConfigFile electionPortBindRetry
    forceSync initLimit metricsProvider.className metricsProvider.httpHost metricsProvider.httpPort observerMasterPort
    oraclePath peerType portUnification quorumListenOnAllIPs reconfigEnabled secureClientPort secureClientPortAddress
    serverCnxnFactory skipACL snapshot.trust.empty sslQuorum sslQuorumReloadCertFiles syncEnabled standaloneEnabled syncLimit
    tickTime
""")
"""ZooKeeper takes each unknown key as the system property `zookeeper.<key>` (QuorumPeerConfig). `db.autocreate=true` would let an empty
member vote. `forceSync=no` would acknowledge unsynced writes. `snapshot.trust.empty` would start without the data. `admin.restore.enabled`
would let each client of the admin port replace all data. Other providers would not know the access lists of a stack with certificates.
`client.portUnification` would take plain text at the encrypted port."""

BOOKKEEPER: OwnedKeys = {
    **_of_operator("""
        advertisedAddress allowEphemeralPorts allowLoopback allowStorageExpansion autoRecoveryDaemonEnabled bookieId bookiePort
        dataIntegrityChecking dataIntegrityStampMissingCookies disableServerSocketBind enableLocalTransport
        entryLogPerLedgerEnabled extraServerComponents httpServerClass httpServerEnabled httpServerHost
        httpServerKeyStorePassword httpServerKeyStorePath httpServerPort httpServerTlsEnable httpServerTrustStorePassword
        httpServerTrustStorePath include includeOptional indexDirectories journalDirectories journalDirectory journalSyncData
        journalWriteData ledgerDirectories ledgerStorageClass ledgersRootPath zkLedgersRootPath listeningInterface
        persistBookieStatusEnabled skipReplayJournalInvalidRecord statsProviderClass prometheusStatsHttpEnable
        prometheusStatsHttpPort useHostNameAsBookieID useShortHostName useTransactionalCompaction
        authorizedRoles bookieAuthProviderFactoryClass
    """),
    **_PLACEMENT,
    **_CERTIFICATES,
    "metadataServiceUri": "spec.zooKeeperRef or spec.zooKeeperAddress",
    "zkServers": "spec.zooKeeperRef or spec.zooKeeperAddress",
    "gcWaitTime": "spec.garbageCollection.intervalSeconds",
    "journalBufferedEntriesThreshold": "spec.journalSync.bufferedEntries",
    "journalBufferedWritesThreshold": "spec.journalSync.bufferedWrites",
    "journalFlushWhenQueueEmpty": "spec.journalSync.flushWhenQueueEmpty",
    "journalMaxGroupWaitMSec": "spec.journalSync.maxGroupWaitMilliseconds",
    "majorCompactionInterval": "spec.garbageCollection.majorCompaction.intervalSeconds",
    "majorCompactionThreshold": "spec.garbageCollection.majorCompaction.thresholdPercent",
    "minorCompactionInterval": "spec.garbageCollection.minorCompaction.intervalSeconds",
    "minorCompactionThreshold": "spec.garbageCollection.minorCompaction.thresholdPercent",
    "replicationRateByBytes": "spec.autoRecovery.bytesPerSecond",
    "lostBookieRecoveryDelay": "spec.autoRecovery.lostBookieRecoveryDelaySeconds",
}
"""`journalSyncData=false` and `journalWriteData=false` acknowledge entries that no disk holds. `allowStorageExpansion` and
`dataIntegrity...` relax the cookie check that keeps an empty disk out. `skipReplayJournalInvalidRecord` starts a bookie without the
acknowledged entries behind a damaged one. In BookKeeper 4.18 `entryLogPerLedgerEnabled` swallows errors of a full disk as it closes a log.
`useTransactionalCompaction` can take a copy that a crash has left for another log's. `include` reads a whole file of keys.
`httpServerTlsEnable` and its keys do nothing: the image's HTTP server is in plain text. `extraServerComponents` start servers of their
own."""

HERDDB: OwnedKeys = {
    **_of_operator("""
        bookkeeper.metadataServiceUri bookkeeper.zkLedgersRootPath bookkeeper.zkServers herdkeeper.credentials.dir
        herdkeeper.http.host herdkeeper.http.port http.enable http.host http.port requirefsync server.advertised.host
        server.advertised.port server.base.dir server.bookkeeper.bookieid.enabled server.bookkeeper.ledgers.path
        server.bookkeeper.port server.bookkeeper.start server.bookkeeper.wait.cluser.ready.timeout server.clear.at.boot
        server.data.dir server.enforce.leadership server.halt.on.tablespace.boot.error server.host server.log.dir
        server.metadata.dir server.mode server.network.enabled server.node.id server.port server.tmp.dir
        server.zookeeper.address server.zookeeper.path tablespace.default.replica.count
    """),
    **dict.fromkeys(f"bookkeeper.{key}" for key in (*_PLACEMENT, *_CERTIFICATES)),
    "server.bookkeeper.ensemble.size": "spec.ledgers.ensembleSize",
    "server.bookkeeper.write.quorum.size": "spec.ledgers.writeQuorum",
    "server.bookkeeper.ack.quorum.size": "spec.ledgers.ackQuorum",
    "server.bookkeeper.ledgers.max.size": "spec.ledgers.maxSize",
    "server.bookkeeper.ledgers.retention.period": "spec.ledgers.retentionHours",
    "herdkeeper.tls.dir": "spec.tls",
    "herdkeeper.tls.plaintext": "spec.tls.plaintext",
    "server.ssl": "spec.tls",
    "server.password": "spec.credentialsSecretRef",
    "server.username": "spec.credentialsSecretRef",
    "server.users.file": "spec.users",
}
"""HerdDB passes `bookkeeper.…` on to its BookKeeper client. `server.clear.at.boot` would empty a node at its start. `requirefsync` and the
quorums decide whether an acknowledged row survives."""

ZOOKEEPER_PREFIXES = ("server.", "group", "weight.", "ssl.", "authprovider.")
"""In small letters: static membership, which belongs to the dynamic file on each member's volume, TLS settings, and who is who."""


def owner_of(key: str, owned: OwnedKeys, prefixes: tuple[str, ...] = ()) -> str | None:
    """Returns what sets an owned key: a field of the spec, or "the operator". None if a user may set the key.

    Case does not matter: BookKeeper's file reader (commons-configuration2) takes `Include` for `include`.
    """
    meant = key.lower()
    found = next((decided_by or "the operator" for each, decided_by in owned.items() if each.lower() == meant), None)
    return found or ("the operator" if prefixes and meant.startswith(prefixes) else None)
