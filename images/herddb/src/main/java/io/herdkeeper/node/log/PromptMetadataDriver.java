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
 * The way of BookKeeper's client to ZooKeeper, on which what a lost connection has cut off is asked again within a second.
 *
 * <p>BookKeeper's own driver (4.16, {@code ZKMetadataClientDriver}) rests for the whole {@code zkTimeout} first, the time of a session,
 * and a client's configuration has no other key for it, as a bookie's has ({@code zkRetryBackoffStartMs}). So a new leader that asked for
 * a ledger's metadata while a machine took its member of ZooKeeper along stood still long after another member was there. A rest is
 * needed for znodes that an expiring session takes along, which a bookie has, and this client has not: it reads, and writes by
 * compare-and-set.
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
