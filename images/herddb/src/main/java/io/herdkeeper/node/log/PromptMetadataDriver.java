package io.herdkeeper.node.log;

import java.io.IOException;
import java.util.Optional;
import java.util.concurrent.ScheduledExecutorService;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.bookkeeper.meta.MetadataClientDriver;
import org.apache.bookkeeper.meta.MetadataDrivers;
import org.apache.bookkeeper.meta.exceptions.Code;
import org.apache.bookkeeper.meta.exceptions.MetadataException;
import org.apache.bookkeeper.meta.zk.ZKMetadataClientDriver;
import org.apache.bookkeeper.stats.StatsLogger;
import org.apache.bookkeeper.zookeeper.BoundExponentialBackoffRetryPolicy;
import org.apache.bookkeeper.zookeeper.ZooKeeperClient;
import org.apache.zookeeper.KeeperException;

/**
 * The connection of BookKeeper's client to ZooKeeper, which repeats a request of a lost connection within a second.
 *
 * <p>BookKeeper's own driver (4.16, {@code ZKMetadataClientDriver}) first waits for the whole {@code zkTimeout}, the time of a session.
 * A client has no setting for this, unlike a bookie ({@code zkRetryBackoffStartMs}). So if a new leader's ZooKeeper member was lost
 * during a read of a ledger's metadata, the leader waited long after another member was available. The wait is only needed for
 * ephemeral znodes of an expiring session. A bookie has such znodes; this client only reads, and writes by compare-and-set.
 */
public final class PromptMetadataDriver extends ZKMetadataClientDriver {

    private static final int FIRST_REST_MILLIS = 100;
    private static final int LONGEST_REST_MILLIS = 1_000;

    private ZooKeeperClient session;

    /** Has all BookKeeper clients of this process that are made from now on use it. */
    static void register() {
        MetadataDrivers.registerClientDriver(SCHEME, PromptMetadataDriver.class, true);
    }

    @Override
    public synchronized MetadataClientDriver initialize(
            ClientConfiguration configuration, ScheduledExecutorService scheduler, StatsLogger statistics, Optional<Object> givenSession)
            throws MetadataException {
        if (givenSession.isPresent()) {
            return super.initialize(configuration, scheduler, statistics, givenSession);
        }
        ClientConfiguration rooted = new ClientConfiguration(configuration);
        // with a given session the driver takes the root from here only
        rooted.setZkLedgersRootPath(resolveZkLedgersRootPath(configuration));
        session = connect(configuration, statistics);
        return super.initialize(rooted, scheduler, statistics, Optional.of(session));
    }

    @Override
    public synchronized void close() {
        super.close();
        if (session == null) {
            return;
        }
        try {
            session.close();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private static ZooKeeperClient connect(ClientConfiguration configuration, StatsLogger statistics) throws MetadataException {
        String servers = resolveZkServers(configuration);
        try {
            return ZooKeeperClient.newBuilder()
                    .connectString(servers)
                    .sessionTimeoutMs(configuration.getZkTimeout())
                    .operationRetryPolicy(new BoundExponentialBackoffRetryPolicy(
                            FIRST_REST_MILLIS, LONGEST_REST_MILLIS, configuration.getZkRetryBackoffMaxRetries()))
                    .requestRateLimit(configuration.getZkRequestRateLimit())
                    .statsLogger(statistics)
                    .build();
        } catch (IOException | KeeperException error) {
            throw new MetadataException(Code.METADATA_SERVICE_ERROR, "ZooKeeper at " + servers + " did not answer", error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new MetadataException(Code.METADATA_SERVICE_ERROR, "interrupted while ZooKeeper at " + servers + " was asked", error);
        }
    }
}
