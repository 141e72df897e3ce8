package org.apache.bookkeeper.client;

import herddb.log.LogNotAvailableException;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiConsumer;
import java.util.function.BooleanSupplier;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.bookkeeper.client.SyncCallbackUtils.SyncOpenCallback;
import org.apache.bookkeeper.client.api.CreateBuilder;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.common.util.OrderedExecutor;
import org.apache.bookkeeper.common.util.OrderedScheduler;
import org.apache.bookkeeper.meta.CleanupLedgerManager;
import org.apache.bookkeeper.meta.LedgerManager;
import org.apache.bookkeeper.versioning.Versioned;

/**
 * A BookKeeper client for one log of HerdDB, which opens the log's own ledgers only. It gives each ledger that it makes a random password of
 * its own, and opens each by the password in that ledger's metadata. HerdDB gives all ledgers one constant. It is in this package since no
 * other one can extend the client.
 *
 * <p>Which ledgers are the log's own is in their metadata, where HerdDB has written the tablespace since 0.6.0. Ids begin anew in another
 * BookKeeper cluster: there a list of before names ledgers of others, which HerdDB would fence and replay. BookKeeper reads a ledger's
 * metadata to open it, and those are what is looked at: no ledger is asked for twice.
 *
 * <p>A log whose ledgers have the constant goes on with it: an earlier version of this program can open no other ledger. So a database keeps
 * the kind of passwords that it was founded with.
 */
public final class LedgersWithOwnPasswords extends BookKeeper {

    private static final Logger LOGGER = Logger.getLogger(LedgersWithOwnPasswords.class.getName());
    private static final SecureRandom RANDOM = new SecureRandom();
    private static final int BYTES = 32;
    /** In a ledger's custom metadata, by HerdDB's {@code BookkeeperCommitLog}. */
    private static final String TABLESPACE = "tablespaceuuid";

    private final BookKeeper client;
    private final String tableSpaceUuid;
    private final BiConsumer<Long, String> refused;
    private final byte[] constant;
    private final BooleanSupplier beginsWithConstant;
    /** Whether new ledgers have the constant: as the one that was fenced last, which is the newest. Null before this is known. */
    private volatile Boolean keepsConstant;

    /**
     * A view of a client, which it does not close.
     *
     * @param tableSpaceUuid     whose log it is
     * @param refused            is told of a ledger that is not its own, and whose it is
     * @param constant           what HerdDB gives its ledgers
     * @param beginsWithConstant whether a log without ledgers does so, too
     */
    public LedgersWithOwnPasswords(BookKeeper client, String tableSpaceUuid, BiConsumer<Long, String> refused, byte[] constant,
            BooleanSupplier beginsWithConstant) {
        this.client = client;
        this.tableSpaceUuid = tableSpaceUuid;
        this.refused = refused;
        this.constant = constant.clone();
        this.beginsWithConstant = beginsWithConstant;
    }

    /** The same for who makes no ledger; what is refused is in the node's own log alone. */
    public LedgersWithOwnPasswords(BookKeeper client, String tableSpaceUuid) {
        this(client, tableSpaceUuid, (ledger, why) -> { }, new byte[0], () -> false);
    }

    /** A password that nobody knows. */
    public static byte[] random() {
        byte[] password = new byte[BYTES];
        RANDOM.nextBytes(password);
        return password;
    }

    /** Opens a ledger of the log, and does not fence it. */
    public LedgerHandle openWithoutFencing(long ledger) throws BKException, InterruptedException {
        return byItsOwnPassword().openLedgerNoRecovery(ledger);
    }

    /** Fences a ledger of the log. */
    public CompletableFuture<LedgerHandle> fence(long ledger) throws BKException {
        CompletableFuture<LedgerHandle> fenced = new CompletableFuture<>();
        byItsOwnPassword().asyncOpenLedger(ledger, new SyncOpenCallback(fenced), null);
        return fenced;
    }

    private BookKeeperAdmin byItsOwnPassword() throws BKException {
        if (client.isClosed()) {
            throw new BKException.BKClientClosedException(); // as BookKeeper's own ways to open a ledger do
        }
        return new BookKeeperAdmin(this);
    }

    @Override
    public CreateBuilder newCreateLedgerOp() {
        if (keepsConstant == null) {
            keepsConstant = beginsWithConstant.getAsBoolean();
        }
        boolean keeps = keepsConstant;
        return new LedgerCreateOp.CreateBuilderImpl(client) {
            @Override
            public CreateBuilder withPassword(byte[] password) {
                return super.withPassword(keeps ? password : random());
            }
        };
    }

    @Override
    public LedgerHandle openLedger(long ledger, DigestType digest, byte[] password) throws BKException, InterruptedException {
        LedgerHandle fenced = byItsOwnPassword().openLedger(ledger);
        keepsConstant = Arrays.equals(fenced.getLedgerMetadata().getPassword(), constant);
        return fenced;
    }

    @Override
    public LedgerHandle openLedgerNoRecovery(long ledger, DigestType digest, byte[] password) throws BKException, InterruptedException {
        return openWithoutFencing(ledger);
    }

    @Override
    public void deleteLedger(long ledger) throws BKException, InterruptedException {
        client.deleteLedger(ledger);
    }

    /** What reads the metadata of the log's own ledgers, and fails for others: who opens a ledger does not get farther than this. */
    @Override
    public LedgerManager getLedgerManager() {
        return new CleanupLedgerManager(client.getLedgerManager()) {
            @Override
            public CompletableFuture<Versioned<LedgerMetadata>> readLedgerMetadata(long ledger) {
                return client.getLedgerManager().readLedgerMetadata(ledger).thenApply(read -> own(ledger, read));
            }
        };
    }

    private Versioned<LedgerMetadata> own(long ledger, Versioned<LedgerMetadata> read) {
        byte[] named = read.getValue().getCustomMetadata().get(TABLESPACE);
        if (named != null && Arrays.equals(named, tableSpaceUuid.getBytes(StandardCharsets.UTF_8))) {
            return read;
        }
        String why = "ledger " + ledger + " is listed for the tablespace " + tableSpaceUuid + ", and its metadata "
                + (named == null ? "names no tablespace" : "names the tablespace " + new String(named, StandardCharsets.UTF_8))
                + ": it is not opened, fenced or deleted";
        LOGGER.log(Level.SEVERE, why);
        refused.accept(ledger, why);
        throw new LogNotAvailableException(why, new BKException.BKUnauthorizedAccessException());
    }

    // What BookKeeper's own operation asks of its client when it opens a ledger.

    @Override
    public ClientContext getClientCtx() {
        return client.getClientCtx();
    }

    @Override
    public OrderedExecutor getMainWorkerPool() {
        return client.getMainWorkerPool();
    }

    @Override
    OrderedScheduler getScheduler() {
        return client.getScheduler();
    }

    @Override
    int getReturnRc(int code) {
        return client.getReturnRc(code);
    }
}
