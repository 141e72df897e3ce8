package io.herdkeeper.node.status;

import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.log.NodeCommitLog;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/**
 * Hears what HerdDB tells nowhere but in its log: the verdicts of consistency checks, and why a tablespace failed.
 *
 * <p>The texts are those of HerdDB {@value io.herdkeeper.node.log.HerdInternals#HERDDB_VERSION}.
 */
public final class HerdEvents extends Handler {

    private static final List<String> LOGGERS = List.of("herddb.core.TableSpaceManager", "herddb.core.DBManager");
    private static final String VERDICT = "Data consistency check ";
    private static final String FOLLOWER_ERROR = "follower error ";
    private static final String HANDLING_ERROR = "cannot handle tablespace ";

    /** Held, since the log manager keeps loggers by weak references only. */
    private final List<Logger> loggers = LOGGERS.stream().map(Logger::getLogger).toList();
    private final Map<String, Map<String, Verdict>> verdicts = new ConcurrentHashMap<>();
    private final Map<String, String> errors = new ConcurrentHashMap<>();

    /** Starts to listen. */
    public void listen() {
        loggers.forEach(logger -> logger.addHandler(this));
    }

    /** The last verdict on each table of a tablespace. */
    public Map<String, Verdict> verdicts(String tablespace) {
        return new TreeMap<>(verdicts.getOrDefault(tablespace, Map.of()));
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
        Object[] values = event.getParameters();
        if (message.startsWith(VERDICT) && values != null && values.length >= 3) {
            verdicts.computeIfAbsent(String.valueOf(values[1]), tablespace -> new ConcurrentHashMap<>())
                    .put(String.valueOf(values[0]), new Verdict(
                            message.startsWith(VERDICT + "PASS"), String.valueOf(values[2]), event.getMillis(), position()));
        } else if (message.startsWith(FOLLOWER_ERROR)) {
            remember(message.substring(FOLLOWER_ERROR.length()), event);
        } else if (message.startsWith(HANDLING_ERROR)) {
            remember(message.substring(HANDLING_ERROR.length()), event);
        }
    }

    /** HerdDB tells of a verdict in the thread that applies the check's entry. */
    private static Position position() {
        LogSequenceNumber applying = NodeCommitLog.applying();
        return applying == null ? null : Position.of(applying);
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
