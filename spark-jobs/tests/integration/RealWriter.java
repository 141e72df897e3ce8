import java.util.Arrays;
import java.util.Enumeration;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.BookKeeper.DigestType;
import org.apache.bookkeeper.client.LedgerEntry;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;

/**
 * A writer that never closes its ledger, and whoever takes over from it, both with BookKeeper's own client.
 *
 * <p>Usage: {@code RealWriter <metadata service URI> <password> write <copies> <entries> <bytes>} prints the ledger's id once all entries are
 * acknowledged. {@code RealWriter <metadata service URI> <password> recover <ledger> <bytes>} recovers it, reads each entry, and prints the last
 * one's id.
 */
public final class RealWriter {
    private RealWriter() {
    }

    public static void main(String[] arguments) throws Exception {
        ClientConfiguration configuration = new ClientConfiguration();
        configuration.setMetadataServiceUri(arguments[0]);
        byte[] password = arguments[1].getBytes();
        int bytes = Integer.parseInt(arguments[arguments.length - 1]);
        try (BookKeeper client = new BookKeeper(configuration)) {
            System.out.println(arguments[2].equals("write")
                    ? write(client, password, Integer.parseInt(arguments[3]), Integer.parseInt(arguments[4]), bytes)
                    : recover(client, password, Long.parseLong(arguments[3]), bytes));
            System.out.flush();
            Runtime.getRuntime().halt(0);
        }
    }

    private static long write(BookKeeper client, byte[] password, int copies, int entries, int bytes) throws Exception {
        LedgerHandle ledger = client.createLedger(copies, copies, copies / 2 + 1, DigestType.CRC32C, password);
        for (int entry = 0; entry < entries; entry++) {
            ledger.addEntry(payload(entry, bytes));
        }
        return ledger.getId();
    }

    private static long recover(BookKeeper client, byte[] password, long id, int bytes) throws Exception {
        LedgerHandle ledger = client.openLedger(id, DigestType.CRC32C, password);
        Enumeration<LedgerEntry> entries = ledger.readEntries(0, ledger.getLastAddConfirmed());
        for (int entry = 0; entries.hasMoreElements(); entry++) {
            if (!Arrays.equals(payload(entry, bytes), entries.nextElement().getEntry())) {
                throw new IllegalStateException("entry " + entry + " is not what was written");
            }
        }
        return ledger.getLastAddConfirmed();
    }

    private static byte[] payload(int entry, int bytes) {
        byte[] payload = new byte[bytes];
        Arrays.fill(payload, (byte) (entry + 1));
        return payload;
    }
}
