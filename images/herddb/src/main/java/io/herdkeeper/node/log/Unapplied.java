package io.herdkeeper.node.log;

import herddb.log.LogEntry;
import herddb.log.LogEntryType;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The rows and COMMITs that a leader has logged and not applied yet.
 *
 * <p>HerdDB applies each entry in a thread of its own, once the bookies have it. A COMMIT that drops a table or an index closes it: what the
 * log has before it must be applied by then, and no COMMIT behind it may be at that table meanwhile. Only for entries does a COMMIT wait. A
 * statement that has logged nothing yet may itself wait for a row which the transaction has locked.
 */
final class Unapplied {

    private static final CompletableFuture<Void> NOTHING = CompletableFuture.completedFuture(null);

    private final Map<LogEntry, CompletableFuture<Void>> entries = new ConcurrentHashMap<>();
    /** The last COMMIT that drops something. */
    private volatile CompletableFuture<Void> drop = NOTHING;
    private final CompletableFuture<Void> ended = new CompletableFuture<>();

    /**
     * Notes an entry that is about to be written, under the lock under which it is; one that drops something has that lock for itself.
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

    /** The entry is applied, or will never be. */
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
