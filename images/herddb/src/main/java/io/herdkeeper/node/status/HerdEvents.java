package io.herdkeeper.node.status;

import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/**
 * Reads from HerdDB's log messages what HerdDB reports nowhere else: why a tablespace failed.
 *
 * <p>The texts are those of HerdDB {@value io.herdkeeper.node.internals.HerdInternals#HERDDB_VERSION}.
 */
public final class HerdEvents extends Handler {

    private static final List<String> LOGGERS = List.of("herddb.core.TableSpaceManager", "herddb.core.DBManager");
    private static final String FOLLOWER_ERROR = "follower error ";
    private static final String HANDLING_ERROR = "cannot handle tablespace ";

    /** Held, since the log manager keeps loggers by weak references only. */
    private final List<Logger> loggers = LOGGERS.stream().map(Logger::getLogger).toList();
    private final Map<String, String> errors = new ConcurrentHashMap<>();

    /** Starts to listen. */
    public void listen() {
        loggers.forEach(logger -> logger.addHandler(this));
    }

    /** The last failure of a tablespace with its time, or null. */
    public String lastError(String tablespace) {
        return errors.get(tablespace);
    }

    /** The last failure of each tablespace that had one. */
    public Map<String, String> errors() {
        return Map.copyOf(errors);
    }

    @Override
    public void publish(LogRecord event) {
        String message = event.getMessage();
        if (message == null) {
            return;
        }
        if (message.startsWith(FOLLOWER_ERROR)) {
            remember(message.substring(FOLLOWER_ERROR.length()), event);
        } else if (message.startsWith(HANDLING_ERROR)) {
            remember(message.substring(HANDLING_ERROR.length()), event);
        }
    }

    private void remember(String tablespace, LogRecord event) {
        Throwable root = event.getThrown();
        while (root != null && root.getCause() != null) {
            root = root.getCause();
        }
        errors.put(tablespace, Instant.ofEpochMilli(event.getMillis()) + " " + (root == null ? event.getMessage() : root));
    }

    @Override
    public void flush() {
        // nothing is buffered
    }

    @Override
    public void close() {
        loggers.forEach(logger -> logger.removeHandler(this));
    }
}
