package io.herdkeeper.node.http;

import io.herdkeeper.node.evidence.LocalCopies;
import io.herdkeeper.node.leadership.ActivatorWaker;
import io.herdkeeper.node.status.NodeStatus;
import io.herdkeeper.node.status.NodeStatus.Phase;
import io.herdkeeper.node.status.TablespaceStatus;
import java.io.IOException;
import java.io.StringWriter;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.bookkeeper.stats.prometheus.PrometheusMetricsProvider;

/** What is requested of the node as a whole. */
record NodeEndpoints(NodeStatus node, ActivatorWaker waker, LocalCopies copies, PrometheusMetricsProvider metrics, TimeLimited metadata) {

    List<Endpoint> all() {
        return List.of(
                Endpoint.get("metrics", this::metrics),
                Endpoint.get("healthz", this::health),
                Endpoint.get("readyz", this::readiness),
                Endpoint.get("tablespaces", this::tablespaces),
                Endpoint.post(List.of("activator", "wake"), this::wake));
    }

    /** {@code GET /metrics}: metrics of HerdDB, its BookKeeper client, the JVM and the node program for Prometheus. */
    private Answer metrics(Request request) throws IOException {
        StringWriter text = new StringWriter();
        metrics.writeAllMetrics(text);
        text.append(NodeMetrics.text(node.running(), copies.dataFolder().toFile()));
        return Answer.text(200, "text/plain; version=0.0.4; charset=utf-8", text.toString());
    }

    /**
     * {@code GET /healthz}: whether a restart would help.
     *
     * <p>Only a dead activator needs one: nothing in the process can start that thread again. An outage of ZooKeeper, bookies or the leader
     * is no reason: a restart would only add its own outage.
     */
    private Answer health(Request request) {
        return node.activatorDied()
                ? Answer.error(503, "the activator died: no tablespace boots, stops or checkpoints any more")
                : Answer.json(200, Map.of("phase", node.phase()));
    }

    /** {@code GET /readyz}: whether every tablespace of this node whose log can be replayed has the role that the metadata gives to the node. */
    private Answer readiness(Request request) {
        if (node.phase() != Phase.RUNNING) {
            return readiness(503, "the node is " + node.phase().name().toLowerCase(Locale.ROOT), List.of());
        }
        try {
            List<TablespaceStatus> unsettled =
                    metadata.call(node::tablespaces).stream().filter(tablespace -> !tablespace.ready()).toList();
            // One whose log can't be replayed is no reason to take the others' clients away.
            boolean ready = unsettled.stream().allMatch(tablespace -> tablespace.unreplayable() != null);
            return readiness(ready ? 200 : 503, unsettled.isEmpty() ? "every tablespace is settled in its role"
                    : "not settled: " + unsettled.stream().map(NodeEndpoints::describe).toList(), unsettled);
        } catch (Exception error) {
            return readiness(503, "unknown, since the metadata can't be read: " + error, List.of());
        }
    }

    private static String describe(TablespaceStatus tablespace) {
        return tablespace.name() + " is " + tablespace.role().name().toLowerCase(Locale.ROOT)
                + ", its leader is " + tablespace.leaderInMetadata()
                + (tablespace.unreplayable() == null ? "" : ", and its log can't be replayed: " + tablespace.unreplayable());
    }

    private static Answer readiness(int status, String reason, List<TablespaceStatus> unsettled) {
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("ready", status == 200);
        json.put("reason", reason);
        json.put("tablespaces", unsettled);
        return Answer.json(status, json);
    }

    /** {@code GET /tablespaces}: each tablespace of this node with its role and positions. */
    private Answer tablespaces(Request request) {
        if (node.phase() == Phase.STARTING) {
            return Answer.error(503, "the node is starting");
        }
        try {
            return Answer.json(200, metadata.call(node::tablespaces));
        } catch (Exception error) {
            return Answer.error(503, "the metadata can't be read: " + error);
        }
    }

    /** {@code POST /activator/wake}: the node applies a changed leadership now. */
    private Answer wake(Request request) {
        waker.wake();
        return Answer.json(202, Map.of("woken", true));
    }
}
