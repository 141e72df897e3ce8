package io.herdkeeper.node.log;

import herddb.log.LogEntry;
import herddb.log.LogEntryType;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The rows and COMMITs that a leader has logged and not applied yet.
 *
 * <p>HerdDB applies each entry in a thread of its own, once the bookies have it. A COMMIT that drops a table or an index closes it. What
 * the log has before that COMMIT must be applied by then, and no later COMMIT may use the table meanwhile. A COMMIT waits only for
 * entries: a statement that has logged nothing yet may itself wait for a row that the transaction has locked.
 */
final class Unapplied {

    private static final CompletableFuture<Void> NOTHING = CompletableFuture.completedFuture(null);

    private final Map<LogEntry, CompletableFuture<Void>> entries = new ConcurrentHashMap<>();
    /** The last COMMIT that drops something. */
    private volatile CompletableFuture<Void> drop = NOTHING;
    private final CompletableFuture<Void> ended = new CompletableFuture<>();

    /**
     * Notes an entry that is about to be written. The caller holds the lock for writing it, exclusively if the entry drops something.
     *
     * @return what has to be applied before it
     */
    CompletableFuture<Void> add(LogEntry entry, boolean drops) {
        boolean commit = entry.type == LogEntryType.COMMITTRANSACTION;
        if (!commit && (entry.transactionId > 0 || !TransactionEnds.isRow(entry))) {
            return NOTHING;
        }
        CompletableFuture<Void> before = commit ? drop : NOTHING;
        CompletableFuture<Void> own = new CompletableFuture<>();
        if (drops) {
            before = CompletableFuture.anyOf(ended, CompletableFuture.allOf(entries.values().toArray(CompletableFuture[]::new)))
                    .thenAccept(done -> { });
            drop = own;
        }
        entries.put(entry, own);
        return before;
    }

    /** The entry is applied, or never will be. */
    void over(LogEntry entry) {
        CompletableFuture<Void> own = entries.remove(entry);
        if (own != null) {
            own.complete(null);
        }
    }

    /** Nothing is waited for any more: the log ends, and an entry may never be over. */
    void end() {
        ended.complete(null);
    }
}
