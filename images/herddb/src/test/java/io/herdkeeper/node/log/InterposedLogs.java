package io.herdkeeper.node.log;

import herddb.cluster.BookkeeperCommitLogManager;
import herddb.cluster.LedgersInfo;
import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.log.LogEntry;
import herddb.log.LogEntryFactory;
import herddb.log.LogSequenceNumber;
import herddb.server.ServerConfiguration;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.log.NodeCommitLog.LogIdentity;
import java.util.ArrayList;
import java.util.Collections;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.stats.NullStatsLogger;

/** The logs of a node, with somebody beside who hears of each step, and of each entry that is applied. */
public final class InterposedLogs extends NodeCommitLogManager {

    /** Who hears of it, in the thread that does it, and may hold it up. */
    public interface Beside {

        /** Does the step. */
        void step(String what, Runnable step);

        /** Applies an entry; to throw is to fail at it. */
        <E extends Exception> void apply(LogSequenceNumber position, LogEntry entry, Applying<E> applying) throws E;

        /** A ledger is about to be dropped. */
        void drops(long ledger);
    }

    /** What applies an entry. */
    @FunctionalInterface
    public interface Applying<E extends Exception> extends NodeCommitLog.Applying<E> {
    }

    private final Beside beside;
    private final Consumer<BookKeeper> clients;

    /** @param clients is given the BookKeeper client before anybody uses it */
    public InterposedLogs(ZookeeperMetadataStorageManager metadata, ServerConfiguration configuration, Beside beside,
            Consumer<BookKeeper> clients) {
        super(metadata, configuration, NullStatsLogger.INSTANCE);
        this.beside = beside;
        this.clients = clients;
    }

    @Override
    public void start() {
        super.start();
        clients.accept(getBookKeeper());
    }

    @Override
    NodeCommitLog open(LogIdentity identity, ZookeeperMetadataStorageManager way) {
        return new NodeCommitLog(identity, way, this) {
            @Override
            public void recovery(LogSequenceNumber snapshot, BiConsumer<LogSequenceNumber, LogEntry> consumer, boolean fencing) {
                beside.step(fencing ? "fence and replay" : "replay", () -> super.recovery(snapshot, consumer, fencing));
            }

            @Override
            public void startWriting(int replicas) {
                beside.step("start writing", () -> super.startWriting(replicas));
            }

            @SuppressWarnings("unchecked") // as in the real one
            @Override
            public FollowerContext startFollowing(LogSequenceNumber position) {
                FollowerContext[] context = new FollowerContext[1];
                beside.step("start following", () -> context[0] = super.startFollowing(position));
                return context[0];
            }

            @Override
            public void rollNewLedger() {
                beside.step("roll", super::rollNewLedger);
            }

            @Override
            <E extends Exception> void apply(LogSequenceNumber position, LogEntry entry, Applying<E> applying) throws E {
                super.apply(position, entry, () -> beside.apply(position, entry, applying::run));
            }

            /** All were opened in 1970, so each that has ended is past the retention, within which no replica is without a heartbeat. */
            @Override
            public LedgersInfo writtenLedgers() throws NotWritingException {
                LedgersInfo written = super.writtenLedgers();
                written.setLedgersTimestamps(new ArrayList<>(Collections.nCopies(written.getActiveLedgers().size(), 0L)));
                return written;
            }

            @Override
            public void dropOldest(long ledger) throws NotWritingException, InterruptedException {
                beside.drops(ledger);
                super.dropOldest(ledger);
            }
        };
    }

    /** Writes what HerdDB writes by itself into a log that is idle, so that followers see its last entry. */
    public static void pushLastEntry(BookkeeperCommitLogManager logs, String tableSpaceUuid) {
        if (HerdInternals.log(logs, tableSpaceUuid) instanceof NodeCommitLog log && log.getWriter() != null && !log.isFailed()
                && !log.isClosed()) {
            log.getWriter().writeEntry(LogEntryFactory.noop());
        }
    }
}
