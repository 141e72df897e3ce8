package io.herdkeeper.node.refusals;

import io.herdkeeper.node.refusals.Refusals.Reason;
import io.herdkeeper.node.testing.Await;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;

/** What this process tells of those whom it refuses, from the making of this on. Its nodes tell it together. */
public final class ToldRefusals extends Handler implements AutoCloseable {

    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final Logger LOGGER = Logger.getLogger(Refusals.class.getName());

    private final Map<Reason, Long> before = new EnumMap<>(Reason.class);
    private final List<String> lines = new CopyOnWriteArrayList<>();
    private final SimpleFormatter formatter = new SimpleFormatter();

    public ToldRefusals() {
        for (Reason reason : Reason.values()) {
            before.put(reason, reason.count());
            reason.log.beginMinute(System.nanoTime()); // others have used it up, perhaps
        }
        LOGGER.addHandler(this);
    }

    /** How many are counted under a metric's label. */
    public long since(String label) {
        Reason reason = Reason.valueOf(label.toUpperCase(Locale.ROOT));
        return reason.count() - before.get(reason);
    }

    /** Waits until so many are counted, and the first is logged. */
    public void until(String label, int count) throws Exception {
        Await.until(count + " are counted as " + label, LIMIT, () -> since(label) >= count && !lines.isEmpty());
    }

    public List<String> lines() {
        return new ArrayList<>(lines);
    }

    @Override
    public void publish(LogRecord event) {
        lines.add(formatter.formatMessage(event));
    }

    @Override
    public void flush() {
        // nothing is kept back
    }

    @Override
    public void close() {
        LOGGER.removeHandler(this);
    }
}
