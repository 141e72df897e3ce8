package io.herdkeeper.e2e;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.util.Locale;

/**
 * Writes the lines that checker/history.py reads. Times are seconds of the machine's monotonic clock, the same as Python's.
 */
final class History {

    private static final int LONGEST_ERROR = 300;

    private final Writer file;
    private long acknowledged;

    History(Writer file) {
        this.file = file;
    }

    /** Operation {@code number} of a client begins; {@code content} are the fields of its kind, as JSON. */
    synchronized void begin(String process, long number, String kind, String content) {
        append(process, number, "invoke", "\"kind\": \"" + kind + "\"" + (content.isEmpty() ? "" : ", " + content));
    }

    /** It ends. */
    synchronized void end(String process, long number, String kind, Outcome outcome) {
        String found = outcome.found().isEmpty() ? "" : ", \"values\": " + outcome.found();
        String ledger = outcome.ledger() < 0 ? "" : ", \"ledger\": " + outcome.ledger();
        String rest = "\"kind\": \"" + kind + "\"" + found + ledger + ", \"leader\": \"" + outcome.leader() + "\", \"error\": \"" + escaped(outcome.error()) + "\"";
        append(process, number, outcome.phase(), rest);
        if (outcome.phase().equals("ok") && !kind.equals("read")) {
            acknowledged++;
        }
    }

    /** How many writes the database promised to keep. */
    synchronized long acknowledged() {
        return acknowledged;
    }

    private void append(String process, long number, String phase, String rest) {
        String head = String.format(Locale.ROOT, "{\"at\": %.6f, \"process\": \"%s\", \"number\": %d, \"phase\": \"%s\", ",
                System.nanoTime() / 1e9, process, number, phase);
        try {
            file.write(head + rest + "}\n");
            file.flush();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static String escaped(String text) {
        String shortened = text.length() > LONGEST_ERROR ? text.substring(0, LONGEST_ERROR) : text;
        return shortened.replaceAll("[\\p{Cntrl}\\\\\"]", " ");
    }
}
