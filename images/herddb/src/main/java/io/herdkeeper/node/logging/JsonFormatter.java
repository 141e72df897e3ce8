package io.herdkeeper.node.logging;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.logging.Formatter;
import java.util.logging.LogRecord;

/** A record as one line of JSON, with the names that all servers of a stack use. The thread is the one that formats. */
final class JsonFormatter extends Formatter {

    private final ObjectMapper mapper = new ObjectMapper();

    @Override
    public String format(LogRecord event) {
        Map<String, String> line = new LinkedHashMap<>();
        line.put("time", event.getInstant().toString());
        line.put("level", event.getLevel().getName());
        line.put("logger", String.valueOf(event.getLoggerName()));
        line.put("thread", Thread.currentThread().getName());
        line.put("message", formatMessage(event));
        if (event.getThrown() != null) {
            StringWriter trace = new StringWriter();
            event.getThrown().printStackTrace(new PrintWriter(trace, true));
            line.put("exception", trace.toString());
        }
        try {
            return mapper.writeValueAsString(line) + "\n";
        } catch (JsonProcessingException e) {
            throw new IllegalStateException(e);
        }
    }
}
