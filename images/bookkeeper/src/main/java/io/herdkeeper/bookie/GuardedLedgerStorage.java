package io.herdkeeper.bookie;

import java.io.IOException;
import org.apache.bookkeeper.bookie.Bookie.NoLedgerException;
import org.apache.bookkeeper.bookie.BookieException;
import org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage;

/**
 * BookKeeper's storage, to which a key of zeros is no key of a ledger.
 *
 * <p>A bookie that has restarted knows the key of a ledger when it is written or fenced next: it compares the client's key with the stored
 * one. BookKeeper 4.18 ({@code LedgerMetadataIndex.setMasterKey}) does not do so for a key of zeros, or without bytes. So anybody could write
 * into ledgers and fence them, and the ledger's own key would be refused then.
 */
public final class GuardedLedgerStorage extends DbLedgerStorage {

    /** Takes a key of zeros only where that is stored, as after the index was rebuilt. */
    @Override
    public void setMasterKey(long ledger, byte[] key) throws IOException {
        if (isZeros(key) && !isZeros(stored(ledger))) {
            // A replay of the journal leaves out what was written so through an earlier image. Any other exception would end the bookie.
            throw new NoLedgerException(ledger);
        }
        super.setMasterKey(ledger, key);
    }

    private byte[] stored(long ledger) throws IOException {
        try {
            return readMasterKey(ledger);
        } catch (BookieException error) {
            throw new IOException(error);
        }
    }

    private static boolean isZeros(byte[] key) {
        for (byte each : key) {
            if (each != 0) {
                return false;
            }
        }
        return true;
    }
}
