package io.herdkeeper.node.http;

import io.herdkeeper.node.refusals.Refusals.Reason;
import io.herdkeeper.node.status.RunningTablespace;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Comparator;
import java.util.List;
import java.util.Properties;
import java.util.function.ToLongFunction;

/**
 * The node program's own metrics in Prometheus' text format. They are read on the node; neither ZooKeeper nor a bookie is asked. {@code
 * metrics.properties} has their descriptions.
 */
final class NodeMetrics {

    private static final Properties MEANINGS = meanings();

    private NodeMetrics() {
    }

    /** @param volume a folder on the volume with the tables */
    static String text(List<RunningTablespace> running, File volume) {
        StringBuilder text = new StringBuilder();
        ofTablespaces(text, "herdkeeper_node_leads", running, each -> each.leads() ? 1 : 0);
        ofTablespaces(text, "herdkeeper_node_log_ledger", running, each -> each.applied().ledgerId);
        ofTablespaces(text, "herdkeeper_node_log_entry", running, each -> each.applied().offset);
        ofTablespaces(text, "herdkeeper_node_open_transactions", running, RunningTablespace::openTransactions);
        ofTablespaces(text, "herdkeeper_node_blocked_seconds", running, RunningTablespace::blockedSeconds);
        ofNode(text, "herdkeeper_node_volume_bytes", volume.getTotalSpace());
        ofNode(text, "herdkeeper_node_volume_free_bytes", volume.getUsableSpace());
        ofRefusals(text, "herdkeeper_refused_total");
        return text.toString();
    }

    private static void ofTablespaces(StringBuilder text, String name, List<RunningTablespace> running,
            ToLongFunction<RunningTablespace> value) {
        head(text, name, "{tablespace}");
        running.stream().sorted(Comparator.comparing(RunningTablespace::name))
                .forEach(each -> line(text, name + "{tablespace=\"" + escaped(each.name()) + "\"}", value.applyAsLong(each)));
    }

    private static void ofNode(StringBuilder text, String name, long value) {
        head(text, name, "");
        line(text, name, value);
    }

    private static void ofRefusals(StringBuilder text, String name) {
        head(text, name, "{reason}");
        for (Reason reason : Reason.values()) {
            line(text, name + "{reason=\"" + reason.label() + "\"}", reason.count());
        }
    }

    private static void head(StringBuilder text, String name, String labels) {
        text.append("# HELP ").append(name).append(' ').append(MEANINGS.getProperty(name + labels)).append('\n');
        text.append("# TYPE ").append(name).append(name.endsWith("_total") ? " counter\n" : " gauge\n");
    }

    private static void line(StringBuilder text, String series, long value) {
        text.append(series).append(' ').append(value).append('\n');
    }

    private static String escaped(String value) {
        return value.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n");
    }

    private static Properties meanings() {
        Properties read = new Properties();
        try (InputStream file = NodeMetrics.class.getResourceAsStream("metrics.properties")) {
            read.load(file);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return read;
    }
}
