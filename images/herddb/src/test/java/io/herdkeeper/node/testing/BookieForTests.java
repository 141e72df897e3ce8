package io.herdkeeper.node.testing;

import java.nio.file.Path;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.common.component.LifecycleComponent;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.net.BookieId;
import org.apache.bookkeeper.proto.BookieServer;
import org.apache.bookkeeper.server.EmbeddedServer;
import org.apache.bookkeeper.server.conf.BookieConfiguration;

/** A real bookie in this process, which can hang. */
public final class BookieForTests implements AutoCloseable {

    private final LifecycleComponent components;
    private final BookieServer server;

    private BookieForTests(EmbeddedServer started) {
        components = started.getLifecycleComponentStack();
        server = started.getBookieService().getServer();
    }

    /**
     * Starts one, the first one of all under {@code ledgersPath} as well as another one.
     *
     * @param folder what it writes; empty
     */
    public static BookieForTests start(String zooKeeperAddress, String ledgersPath, Path folder) throws Exception {
        ServerConfiguration configuration = new ServerConfiguration();
        configuration.setMetadataServiceUri("zk+hierarchical://" + zooKeeperAddress + ledgersPath);
        configuration.setBookiePort(BookKeeperForTests.freePort());
        configuration.setAdvertisedAddress("127.0.0.1");
        configuration.setAllowLoopback(true);
        configuration.setJournalDirName(folder.resolve("journal").toString());
        configuration.setLedgerDirNames(new String[]{folder.resolve("ledgers").toString()});
        configuration.setJournalSyncData(false);
        configuration.setProperty("journalMaxGroupWaitMSec", 1);
        configuration.setProperty("journalPreAllocSizeMB", 1);
        configuration.setEntryLogFilePreAllocationEnabled(false);
        configuration.setAutoRecoveryDaemonEnabled(false);
        // false when somebody has done so before
        BookKeeperAdmin.initNewCluster(configuration);
        EmbeddedServer embedded = EmbeddedServer.builder(new BookieConfiguration(configuration)).build();
        embedded.getLifecycleComponentStack().start();
        return new BookieForTests(embedded);
    }

    public BookieId id() throws Exception {
        return server.getBookieId();
    }

    /** Takes no more requests, and answers none, until {@link #resume()}; it stays registered, and is connected. */
    public void suspend() {
        server.suspendProcessing();
    }

    public void resume() {
        server.resumeProcessing();
    }

    @Override
    public void close() {
        components.close();
    }
}
