package io.herdkeeper.node.log;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.client.api.LastConfirmedAndEntry;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.LedgerEntry;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.client.api.ReadHandle;

/** A ledger's reader that shows entries only up to the limit of a {@link FollowerGate}. A bookie that hangs does not delay it. */
final class LimitedReadHandle implements ReadHandle {

    /** Ten times what a bookie that is there needs for an answer from its memory. */
    private static final long ANSWER_MILLIS = 250;

    private final ReadHandle ledger;
    private final FollowerGate gate;
    private final FollowerEnd end;

    LimitedReadHandle(ReadHandle ledger, FollowerGate gate, FollowerEnd end) {
        this.ledger = ledger;
        this.gate = gate;
        this.end = end;
    }

    @Override
    public long getLastAddConfirmed() {
        return limited(ledger.getLastAddConfirmed());
    }

    /** A ledger with entries above the limit is not finished for its reader, though its writer closed it. */
    @Override
    public boolean isClosed() {
        return ledger.isClosed() && ledger.getLastAddConfirmed() <= gate.lastReadableEntry(ledger.getId());
    }

    @Override
    public CompletableFuture<LedgerEntries> readAsync(long firstEntry, long lastEntry) {
        return ledger.readAsync(firstEntry, limited(lastEntry));
    }

    @Override
    public CompletableFuture<LedgerEntries> readUnconfirmedAsync(long firstEntry, long lastEntry) {
        return ledger.readUnconfirmedAsync(firstEntry, limited(lastEntry));
    }

    @Override
    public CompletableFuture<Long> readLastAddConfirmedAsync() {
        return ledger.readLastAddConfirmedAsync().thenApply(this::limited);
    }

    /**
     * Asks all bookies for the LAC, and waits for a short while only.
     *
     * <p>BookKeeper (4.16, {@code TryReadLastConfirmedOp}) answers at once when one of them knows a higher one, and otherwise when
     * the last of them has answered. So a bookie that hangs while nothing is written would hold up the follower for a read's whole time
     * out. The new leader would wait with it, since it begins to boot when the follower has stopped. A follower that is about to be stopped
     * does not wait at all ({@link FollowerEnd}). What comes later is not lost: the ledger's reader notes it.
     */
    @Override
    public CompletableFuture<Long> tryReadLastAddConfirmedAsync() {
        long known = ledger.getLastAddConfirmed();
        return end.orWhatIsKnown(ledger.tryReadLastAddConfirmedAsync(), known)
                .completeOnTimeout(known, ANSWER_MILLIS, TimeUnit.MILLISECONDS)
                .thenApply(this::limited);
    }

    @Override
    public CompletableFuture<LastConfirmedAndEntry> readLastAddConfirmedAndEntryAsync(
            long entryId, long timeOutInMillis, boolean parallel) {
        if (entryId > gate.lastReadableEntry(ledger.getId())) {
            throw new IllegalArgumentException("entry " + entryId + " of ledger " + ledger.getId() + " is above the limit "
                    + gate.lastReadableEntry(ledger.getId()));
        }
        return ledger.readLastAddConfirmedAndEntryAsync(entryId, timeOutInMillis, parallel)
                .thenApply(answer -> new LimitedAnswer(answer, limited(answer.getLastAddConfirmed())));
    }

    @Override
    public long getId() {
        return ledger.getId();
    }

    @Override
    public long getLength() {
        return ledger.getLength();
    }

    @Override
    public LedgerMetadata getLedgerMetadata() {
        return ledger.getLedgerMetadata();
    }

    @Override
    public CompletableFuture<Void> closeAsync() {
        return ledger.closeAsync();
    }

    private long limited(long entryId) {
        return Math.min(entryId, gate.lastReadableEntry(ledger.getId()));
    }

    private record LimitedAnswer(LastConfirmedAndEntry answer, long lastAddConfirmed) implements LastConfirmedAndEntry {

        @Override
        public long getLastAddConfirmed() {
            return lastAddConfirmed;
        }

        @Override
        public boolean hasEntry() {
            return answer.hasEntry();
        }

        @Override
        public LedgerEntry getEntry() {
            return answer.getEntry();
        }

        @Override
        public void close() {
            answer.close();
        }
    }
}
