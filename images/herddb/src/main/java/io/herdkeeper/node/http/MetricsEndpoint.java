package io.herdkeeper.node.http;

import io.herdkeeper.node.evidence.LocalCopies;
import io.herdkeeper.node.status.NodeStatus;
import java.io.IOException;
import java.io.StringWriter;
import java.util.List;
import org.apache.bookkeeper.stats.prometheus.PrometheusMetricsProvider;

/** {@code GET /metrics}: metrics of HerdDB, its BookKeeper client, the JVM and the node program for Prometheus. */
final class MetricsEndpoint implements Endpoint {

    private final PrometheusMetricsProvider metrics;
    private final NodeStatus node;
    private final LocalCopies copies;

    MetricsEndpoint(PrometheusMetricsProvider metrics, NodeStatus node, LocalCopies copies) {
        this.metrics = metrics;
        this.node = node;
        this.copies = copies;
    }

    @Override
    public List<String> path() {
        return List.of("metrics");
    }

    @Override
    public Answer answer(Request request) throws IOException {
        StringWriter text = new StringWriter();
        metrics.writeAllMetrics(text);
        text.append(NodeMetrics.text(node.running(), copies.dataFolder().toFile()));
        return Answer.text(200, "text/plain; version=0.0.4; charset=utf-8", text.toString());
    }
}
