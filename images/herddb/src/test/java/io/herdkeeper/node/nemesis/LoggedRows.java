package io.herdkeeper.node.nemesis;

import herddb.log.LogEntry;
import herddb.log.LogEntryType;
import herddb.utils.Bytes;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.bookkeeper.client.BKException.BKNoSuchLedgerExistsOnMetadataServerException;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.client.LedgerEntry;
import org.apache.bookkeeper.client.LedgerHandle;

/** The rows that were inserted in a ledger, outside of transactions, and who led. */
record LoggedRows(String leader, List<Integer> keys) {

    /** Reads a ledger, and fences nobody; null for one that does not exist. */
    static LoggedRows of(long id) {
        try (LedgerHandle ledger = new BookKeeperAdmin(Bookies.running().client()).openLedgerNoRecovery(id)) {
            List<Integer> keys = new ArrayList<>();
            long last = ledger.getLastAddConfirmed();
            for (LedgerEntry stored : last < 0 ? Collections.<LedgerEntry>emptyList() : Collections.list(ledger.readEntries(0, last))) {
                LogEntry entry = LogEntry.deserialize(stored.getEntry());
                if (entry.type == LogEntryType.INSERT && entry.transactionId <= 0) {
                    keys.add(Bytes.toInt(entry.key.to_array(), 0));
                }
            }
            return new LoggedRows(new String(ledger.getCustomMetadata().get("leader"), StandardCharsets.UTF_8), keys);
        } catch (BKNoSuchLedgerExistsOnMetadataServerException gone) {
            return null;
        } catch (Exception error) {
            throw new IllegalStateException("ledger " + id + " can't be read", error);
        }
    }
}
