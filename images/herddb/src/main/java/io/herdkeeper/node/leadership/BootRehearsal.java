package io.herdkeeper.node.leadership;

import herddb.core.DBManager;
import herddb.file.FileCommitLogManager;
import herddb.file.FileDataStorageManager;
import herddb.file.FileMetadataStorageManager;
import herddb.metadata.MetadataStorageManagerException;
import herddb.model.StatementExecutionResult;
import herddb.model.TableSpace;
import herddb.model.TransactionContext;
import herddb.network.ServerHostData;
import herddb.server.ServerConfiguration;
import herddb.sql.TranslatedQuery;
import herddb.utils.FileUtils;
import io.herdkeeper.node.logging.MutedThreads;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.bookkeeper.stats.NullStatsLogger;

/**
 * Boots a temporary tablespace as its leader several times, in a temporary folder.
 *
 * <p>A boot reads a checkpoint, replays a log, and writes a checkpoint. In a young process this code is not compiled yet and takes three
 * times as long. After a leader change that is time without an acknowledged write. HerdDB runs here embedded, with its log in a file and
 * without a port. ZooKeeper, bookies, clients and the log of this process see nothing of it.
 */
public final class BootRehearsal {

    private static final Logger LOGGER = Logger.getLogger(BootRehearsal.class.getName());
    /** Another name than the tablespace's: a node has a virtual tablespace of its own name. */
    private static final String NODE = "rehearsal";
    private static final String TABLESPACE = "rehearsed";
    /** The JVM compiles what ran some hundred times: the rows do so for what is done per row, the boots for what is done per boot. */
    private static final int BOOTS = 5;
    private static final int ROWS = 1_000;
    private static final int PATIENCE_SECONDS = 60;
    private static final long LARGEST_FILE_BYTES = 4L << 20;

    private final Path folder;

    /**
     * A rehearsal that is still to come.
     *
     * @param parent an existing folder for files that need not outlive the process
     */
    public BootRehearsal(Path parent) {
        this.folder = parent.resolve("boot-rehearsal");
    }

    /** Rehearses once, and only tells when that fails: the node serves as well without, and each try costs some seconds of CPU. */
    public void tried() throws InterruptedException {
        try {
            once();
        } catch (InterruptedException ended) {
            throw ended;
        } catch (Exception error) {
            LOGGER.log(Level.INFO, "the boot of a tablespace was not rehearsed: {0}", error.toString());
        }
    }

    /**
     * Boots, writes, and boots again upon what was written.
     *
     * @throws Exception when HerdDB can't do so, or not within a minute; the folder is gone all the same
     */
    void once() throws Exception {
        long begun = System.nanoTime();
        FileUtils.cleanDirectory(folder);
        try {
            MutedThreads.call("boot-rehearsal", this::boots);
        } finally {
            FileUtils.cleanDirectory(folder);
        }
        LOGGER.log(Level.INFO, "rehearsed the boot of a tablespace in {0} ms",
                String.valueOf((System.nanoTime() - begun) / 1_000_000));
    }

    private Void boots() throws Exception {
        for (int boot = 0; boot < BOOTS; boot++) {
            bootAndWrite(boot);
        }
        return null;
    }

    private void bootAndWrite(int boot) throws Exception {
        ServerConfiguration configuration = new ServerConfiguration()
                .set(ServerConfiguration.PROPERTY_MODE, ServerConfiguration.PROPERTY_MODE_LOCAL)
                .set(ServerConfiguration.PROPERTY_JMX_ENABLE, false);
        Path temporary = folder.resolve("tmp");
        try (DBManager manager = new DBManager(NODE, new OneTablespace(folder.resolve("metadata")),
                new FileDataStorageManager(folder.resolve("data"), temporary, ServerConfiguration.PROPERTY_DISK_SWAP_MAX_RECORDS_DEFAULT,
                        false, false, false, true, true, NullStatsLogger.INSTANCE),
                new FileCommitLogManager(folder.resolve("log"), LARGEST_FILE_BYTES,
                        ServerConfiguration.PROPERTY_MAX_UNSYNCHED_BATCH_DEFAULT,
                        ServerConfiguration.PROPERTY_MAX_UNSYNCHED_BATCH_BYTES_DEFAULT,
                        ServerConfiguration.PROPERTY_MAX_SYNC_TIME_DEFAULT, false, false, 0, NullStatsLogger.INSTANCE),
                temporary, new ServerHostData("127.0.0.1", 0, "", false, Map.of()), configuration, NullStatsLogger.INSTANCE)) {
            manager.start();
            if (!manager.waitForTablespace(TABLESPACE, PATIENCE_SECONDS * 1_000)) {
                throw new TimeoutException("the rehearsed tablespace was not booted within " + PATIENCE_SECONDS + " s");
            }
            if (boot == 0) {
                execute(manager, "CREATE TABLE rehearsed (k int primary key, v string)", List.of()).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
            }
            List<CompletableFuture<StatementExecutionResult>> acknowledged = new ArrayList<>();
            for (int row = 0; row < ROWS; row++) {
                acknowledged.add(execute(manager, "INSERT INTO rehearsed(k,v) VALUES(?,?)", List.of(boot * ROWS + row, "value " + row)));
            }
            CompletableFuture.allOf(acknowledged.toArray(CompletableFuture[]::new)).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
        }
    }

    private static CompletableFuture<StatementExecutionResult> execute(DBManager manager, String sql, List<Object> values) {
        TranslatedQuery translated = manager.getPlanner().translate(TABLESPACE, sql, new ArrayList<>(values), false, true, false, -1);
        return manager.executePlanAsync(translated.plan, translated.context, TransactionContext.NO_TRANSACTION);
    }

    /** Without HerdDB's default tablespace: {@code HerdEvents} hears of failures by a tablespace's name. */
    private static final class OneTablespace extends FileMetadataStorageManager {

        OneTablespace(Path folder) {
            super(folder);
        }

        @Override
        public boolean ensureDefaultTableSpace(String leader, String replica, long maxLeaderInactivityTime, int replicas)
                throws MetadataStorageManagerException {
            if (!listTableSpaces().isEmpty()) {
                return false;
            }
            registerTableSpace(TableSpace.builder().name(TABLESPACE).leader(leader).replica(replica).expectedReplicaCount(replicas).build());
            return true;
        }
    }
}
