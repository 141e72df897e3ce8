package io.herdkeeper.node.http;

import java.io.IOException;
import java.io.StringWriter;
import java.util.List;
import org.apache.bookkeeper.stats.prometheus.PrometheusMetricsProvider;

/** {@code GET /metrics}: HerdDB's, its BookKeeper client's and the JVM's figures for Prometheus. */
final class MetricsEndpoint implements Endpoint {

    private final PrometheusMetricsProvider metrics;

    MetricsEndpoint(PrometheusMetricsProvider metrics) {
        this.metrics = metrics;
    }

    @Override
    public String method() {
        return "GET";
    }

    @Override
    public List<String> path() {
        return List.of("metrics");
    }

    @Override
    public Answer answer(Request request) throws IOException {
        StringWriter text = new StringWriter();
        metrics.writeAllMetrics(text);
        return Answer.text(200, "text/plain; version=0.0.4; charset=utf-8", text.toString());
    }
}
