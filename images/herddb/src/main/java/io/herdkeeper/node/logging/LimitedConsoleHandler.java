package io.herdkeeper.node.logging;

import java.io.PrintStream;
import java.util.HashMap;
import java.util.Map;
import java.util.logging.Formatter;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;

/**
 * Writes records to standard output, at most a fixed number per logger and level in ten seconds.
 *
 * <p>With one bookie down, HerdDB's BookKeeper client logs some 16,000 lines a minute, which hides everything else and fills disks.
 * Omitted records are counted, and the count is logged when the ten seconds are over. Records of {@link MutedThreads} are not written.
 */
public final class LimitedConsoleHandler extends Handler {

    private static final int RECORDS_IN_WINDOW = 200;
    private static final long WINDOW_MILLIS = 10_000;

    private final PrintStream out;
    private final Formatter formatter;
    private final Map<Source, Window> windows = new HashMap<>();

    /** As {@code logging.properties} makes it. */
    public LimitedConsoleHandler() {
        this(System.out, "JSON".equals(System.getenv("LOG_FORMAT")) ? new JsonFormatter() : new OneLineFormatter());
    }

    LimitedConsoleHandler(PrintStream out, Formatter formatter) {
        this.out = out;
        this.formatter = formatter;
        setLevel(Level.ALL);
        setFilter(event -> !MutedThreads.hasCurrent());
    }

    private record Source(String logger, Level level) {
    }

    private static final class Window {
        private final long startMillis;
        private int records;

        Window(long startMillis) {
            this.startMillis = startMillis;
        }
    }

    @Override
    public synchronized void publish(LogRecord event) {
        if (!isLoggable(event)) {
            return;
        }
        Source source = new Source(String.valueOf(event.getLoggerName()), event.getLevel());
        Window window = windows.computeIfAbsent(source, first -> new Window(event.getMillis()));
        if (event.getMillis() - window.startMillis >= WINDOW_MILLIS) {
            tellLeftOut(source, window, event);
            window = new Window(event.getMillis());
            windows.put(source, window);
        }
        if (++window.records <= RECORDS_IN_WINDOW) {
            out.print(formatter.format(event));
            out.flush();
        }
    }

    private void tellLeftOut(Source source, Window window, LogRecord now) {
        if (window.records > RECORDS_IN_WINDOW) {
            LogRecord summary = new LogRecord(source.level(), (window.records - RECORDS_IN_WINDOW)
                    + " more records of this logger were left out within ten seconds");
            summary.setLoggerName(source.logger());
            summary.setInstant(now.getInstant());
            out.print(formatter.format(summary));
        }
    }

    @Override
    public void flush() {
        out.flush();
    }

    @Override
    public void close() {
        out.flush();
    }
}
