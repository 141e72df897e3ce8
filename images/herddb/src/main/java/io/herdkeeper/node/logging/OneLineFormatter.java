package io.herdkeeper.node.logging;

import java.util.logging.Formatter;
import java.util.logging.LogRecord;

/** A record as one line: time, level, logger, message, and for an error its causes and the innermost frames. */
final class OneLineFormatter extends Formatter {

    private static final int FRAMES = 6;

    @Override
    public String format(LogRecord event) {
        StringBuilder line = new StringBuilder(160)
                .append(event.getInstant()).append(' ')
                .append(event.getLevel().getName()).append(' ')
                .append(shortName(event.getLoggerName())).append(": ")
                .append(formatMessage(event));
        for (Throwable error = event.getThrown(); error != null; error = error.getCause()) {
            line.append(" | ").append(error);
            if (error.getCause() == null) {
                appendFrames(line, error);
            }
        }
        return line.toString().replaceAll("\\R\\s*", " ") + "\n";
    }

    private static void appendFrames(StringBuilder line, Throwable error) {
        StackTraceElement[] frames = error.getStackTrace();
        for (int i = 0; i < Math.min(FRAMES, frames.length); i++) {
            line.append(i == 0 ? " at " : " < ").append(frames[i]);
        }
    }

    private static String shortName(String logger) {
        return logger == null ? "?" : logger.substring(logger.lastIndexOf('.') + 1);
    }
}
