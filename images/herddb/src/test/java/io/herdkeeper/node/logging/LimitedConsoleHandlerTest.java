package io.herdkeeper.node.logging;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import org.junit.jupiter.api.Test;

class LimitedConsoleHandlerTest {

    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final LimitedConsoleHandler handler =
            new LimitedConsoleHandler(new PrintStream(out, true, StandardCharsets.UTF_8), new OneLineFormatter());

    @Test
    void aFloodOfOneLoggerIsCountedAndHidesNoOther() {
        for (int i = 0; i < 1_000; i++) {
            log("flood", 1_000 + i, "can't connect " + i, null);
        }
        log("other", 1_500, "seen", null);
        log("flood", 20_000, "again", null);
        List<String> lines = lines();
        assertEquals(200 + 1 + 2, lines.size());
        assertTrue(lines.get(200).contains("seen"), lines.get(200));
        assertTrue(lines.get(201).contains("800 more records"), lines.get(201));
        assertTrue(lines.get(202).contains("again"), lines.get(202));
    }

    @Test
    void anErrorWithItsCauseIsOneLine() {
        log("db", 0, "two\nlines", new IllegalStateException("outer", new RuntimeException("inner")));
        List<String> lines = lines();
        assertEquals(1, lines.size());
        assertTrue(lines.get(0).contains("two lines"), lines.get(0));
        assertTrue(lines.get(0).contains("outer | java.lang.RuntimeException: inner at "), lines.get(0));
    }

    @Test
    void inJsonAnErrorHasItsWholeStackTrace() throws Exception {
        LogRecord event = new LogRecord(Level.SEVERE, "two\n\"lines\" of {0}");
        event.setParameters(new Object[] {"a table"});
        event.setLoggerName("herddb.core.DBManager");
        event.setThrown(new IllegalStateException("outer", new RuntimeException("inner")));
        new LimitedConsoleHandler(new PrintStream(out, true, StandardCharsets.UTF_8), new JsonFormatter()).publish(event);
        assertEquals(1, lines().size());
        JsonNode line = new ObjectMapper().readTree(lines().get(0));
        assertEquals("two\n\"lines\" of a table", line.get("message").asText());
        assertEquals("SEVERE", line.get("level").asText());
        assertEquals("herddb.core.DBManager", line.get("logger").asText());
        assertEquals(Thread.currentThread().getName(), line.get("thread").asText());
        assertEquals(event.getInstant(), Instant.parse(line.get("time").asText()));
        assertTrue(line.get("exception").asText().contains("Caused by: java.lang.RuntimeException: inner\n\t"), line.toString());
    }

    @Test
    void whatMutedThreadsAndThoseThatTheyStartLogIsNotWritten() throws Exception {
        MutedThreads.call("rehearsal", () -> {
            log("db", 0, "unheard", null);
            Thread started = new Thread(() -> log("db", 1, "unheard, too", null));
            started.start();
            started.join();
            return null;
        });
        log("db", 2, "heard", null);
        assertEquals(1, lines().size());
        assertTrue(lines().get(0).contains("heard"), lines().get(0));
    }

    private void log(String logger, long millis, String message, Throwable error) {
        LogRecord event = new LogRecord(Level.SEVERE, message);
        event.setLoggerName("org.example." + logger);
        event.setInstant(Instant.ofEpochMilli(millis));
        event.setThrown(error);
        handler.publish(event);
    }

    private List<String> lines() {
        return out.toString(StandardCharsets.UTF_8).lines().toList();
    }
}
