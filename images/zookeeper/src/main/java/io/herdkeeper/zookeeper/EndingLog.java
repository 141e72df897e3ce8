package io.herdkeeper.zookeeper;

import java.io.IOException;
import org.apache.zookeeper.server.Request;
import org.apache.zookeeper.server.persistence.FileTxnSnapLog;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A store that ends its process once it can't write transactions, such as on a full disk.
 *
 * <p>The disk may have taken a part of them. ZooKeeper (3.9.5, {@code FileTxnLog}) keeps the buffer, follows its leader again in the same
 * process, and writes the whole buffer behind that part once there is room. It then acknowledges transactions that nobody can read: a
 * later start takes the part for the end of the file. A process that starts reads up to the part, and begins another file.
 */
final class EndingLog extends FileTxnSnapLog {

    private static final Logger LOG = LoggerFactory.getLogger(EndingLog.class);

    private final Runnable end;

    /**
     * The store in the same folders as another one.
     *
     * @param end ends the process at once, so that nothing more is written
     */
    EndingLog(FileTxnSnapLog store, Runnable end) throws IOException {
        super(store.getDataLogDir().getParentFile(), store.getSnapDir().getParentFile());
        this.end = end;
    }

    @Override
    public boolean append(Request request) throws IOException {
        return written(() -> super.append(request));
    }

    @Override
    public void commit() throws IOException {
        written(() -> {
            super.commit();
            return null;
        });
    }

    @Override
    public void rollLog() throws IOException {
        written(() -> {
            super.rollLog();
            return null;
        });
    }

    private <T> T written(Write<T> write) throws IOException {
        try {
            return write.run();
        } catch (IOException failed) {
            LOG.error("Transactions can't be written to {}: this member ends", getDataLogDir(), failed);
            end.run();
            throw failed;
        }
    }

    @FunctionalInterface
    private interface Write<T> {
        T run() throws IOException;
    }
}
