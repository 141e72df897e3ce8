package io.herdkeeper.node.http;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.status.RunningTablespace;
import java.io.File;
import java.io.InputStream;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The node's own metrics as Prometheus reads them. */
class NodeMetricsTest {

    private static final List<RunningTablespace> RUNNING = List.of(
            new RunningTablespace("herd", false, new LogSequenceNumber(-1, -1), 0, 0),
            new RunningTablespace("fl\"ights", true, new LogSequenceNumber(7, 41), 2, 75));
    private static final String PAGE = NodeMetrics.text(RUNNING, new File("."));

    @Test
    void eachTablespaceHasItsRoleAndItsPosition() {
        assertTrue(PAGE.contains("""
                # TYPE herdkeeper_node_leads gauge
                herdkeeper_node_leads{tablespace="fl\\"ights"} 1
                herdkeeper_node_leads{tablespace="herd"} 0
                """), PAGE);
        assertTrue(PAGE.contains("herdkeeper_node_log_ledger{tablespace=\"fl\\\"ights\"} 7\n"), PAGE);
        assertTrue(PAGE.contains("herdkeeper_node_log_entry{tablespace=\"herd\"} -1\n"), PAGE);
        assertTrue(PAGE.contains("herdkeeper_node_open_transactions{tablespace=\"fl\\\"ights\"} 2\n"), PAGE);
        assertTrue(PAGE.contains("herdkeeper_node_blocked_seconds{tablespace=\"fl\\\"ights\"} 75\n"), PAGE);
    }

    @Test
    void whatIsServedIsWhatIsDescribed() throws Exception {
        Properties described = new Properties();
        try (InputStream file = NodeMetrics.class.getResourceAsStream("metrics.properties")) {
            described.load(file);
        }
        Set<String> names = new TreeSet<>();
        described.stringPropertyNames().forEach(name -> names.add(name.replaceAll("\\{.*", "")));
        Set<String> served = new TreeSet<>();
        Matcher types = Pattern.compile("^# TYPE (\\w+) (?:gauge|counter)$", Pattern.MULTILINE).matcher(PAGE);
        while (types.find()) {
            served.add(types.group(1));
        }
        assertEquals(names, served);
        assertFalse(PAGE.contains("null"), PAGE);
    }
}
