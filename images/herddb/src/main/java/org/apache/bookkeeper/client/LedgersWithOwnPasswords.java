package org.apache.bookkeeper.client;

import java.security.SecureRandom;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.function.BooleanSupplier;
import org.apache.bookkeeper.client.api.CreateBuilder;
import org.apache.bookkeeper.meta.LedgerManager;

/**
 * A BookKeeper client for one log of HerdDB, which gives each ledger that it makes a random password of its own, and opens each ledger by the
 * password in that ledger's metadata. HerdDB gives all ledgers one constant. It is in this package since no other one can extend the client.
 *
 * <p>A log whose ledgers have the constant goes on with it: an earlier version of this program can open no other ledger. So a database keeps
 * the kind of passwords that it was founded with.
 */
public final class LedgersWithOwnPasswords extends BookKeeper {

    private static final SecureRandom RANDOM = new SecureRandom();
    private static final int BYTES = 32;

    private final BookKeeper client;
    private final byte[] constant;
    private final BooleanSupplier beginsWithConstant;
    /** Whether new ledgers have the constant: as the one that was fenced last, which is the newest. Null before this is known. */
    private volatile Boolean keepsConstant;

    /**
     * A view of a client, which it does not close.
     *
     * @param constant           what HerdDB gives its ledgers
     * @param beginsWithConstant whether a log without ledgers does so, too
     */
    public LedgersWithOwnPasswords(BookKeeper client, byte[] constant, BooleanSupplier beginsWithConstant) {
        this.client = client;
        this.constant = constant.clone();
        this.beginsWithConstant = beginsWithConstant;
    }

    /** A password that nobody knows. */
    public static byte[] random() {
        byte[] password = new byte[BYTES];
        RANDOM.nextBytes(password);
        return password;
    }

    /** Opens a ledger by the password in its metadata, and does not fence it. */
    public static LedgerHandle openWithoutFencing(BookKeeper client, long ledger) throws BKException, InterruptedException {
        return byItsOwnPassword(client).openLedgerNoRecovery(ledger);
    }

    /** Fences a ledger by the password in its metadata. */
    public static CompletableFuture<LedgerHandle> fence(BookKeeper client, long ledger) throws BKException {
        CompletableFuture<LedgerHandle> fenced = new CompletableFuture<>();
        byItsOwnPassword(client).asyncOpenLedger(ledger, new SyncCallbackUtils.SyncOpenCallback(fenced), null);
        return fenced;
    }

    private static BookKeeperAdmin byItsOwnPassword(BookKeeper client) throws BKException {
        if (client.isClosed()) {
            throw new BKException.BKClientClosedException(); // as BookKeeper's own ways to open a ledger do
        }
        return new BookKeeperAdmin(client);
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
        LedgerHandle fenced = byItsOwnPassword(client).openLedger(ledger);
        keepsConstant = Arrays.equals(fenced.getLedgerMetadata().getPassword(), constant);
        return fenced;
    }

    @Override
    public LedgerHandle openLedgerNoRecovery(long ledger, DigestType digest, byte[] password) throws BKException, InterruptedException {
        return openWithoutFencing(client, ledger);
    }

    @Override
    public void deleteLedger(long ledger) throws BKException, InterruptedException {
        client.deleteLedger(ledger);
    }

    @Override
    public LedgerManager getLedgerManager() {
        return client.getLedgerManager();
    }
}
