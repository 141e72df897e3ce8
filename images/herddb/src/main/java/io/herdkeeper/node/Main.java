package io.herdkeeper.node;

import herddb.server.Server;
import io.herdkeeper.node.NodeSettings.RefusedException;
import io.herdkeeper.node.background.Repeated;
import io.herdkeeper.node.evidence.LocalCopies;
import io.herdkeeper.node.http.AdminServer;
import io.herdkeeper.node.leadership.ActivatorWaker;
import io.herdkeeper.node.leadership.BootRehearsal;
import io.herdkeeper.node.leadership.Departure;
import io.herdkeeper.node.leadership.DisplacedLeader;
import io.herdkeeper.node.leadership.PlannerWarmer;
import io.herdkeeper.node.log.LedgerRehearsal;
import io.herdkeeper.node.log.NodeCommitLogManager;
import io.herdkeeper.node.release.LogRelease;
import io.herdkeeper.node.statement.BlockedTablespaces;
import io.herdkeeper.node.status.HerdEvents;
import io.herdkeeper.node.status.NodeStatus;
import io.herdkeeper.node.status.NodeStatus.Phase;
import io.herdkeeper.node.tls.RenewedCertificate;
import io.herdkeeper.node.users.MountedUsers;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.bookkeeper.stats.prometheus.PrometheusMetricsProvider;
import org.apache.commons.configuration.PropertiesConfiguration;

/**
 * Starts one HerdDB node: settings, HTTP port, server, and a clean stop on SIGTERM.
 *
 * <p>The HTTP port comes first, so that probes tell a slow start from a dead process.
 */
public final class Main {

    /** What the settings refuse; the container's restart can't cure it. */
    private static final int EXIT_REFUSED = 64;
    private static final int EXIT_FAILED = 1;
    private static final int EXIT_DISPLACED = 75;
    /** A checkpoint of a large tablespace, which delays the activator, takes a minute or two. */
    private static final DisplacedLeader.Patience DISPLACED = new DisplacedLeader.Patience(Duration.ofMinutes(5), Duration.ofSeconds(15));
    private static final Duration REHEARSAL_PAUSE = Duration.ofSeconds(10);
    private static final Logger LOGGER = Logger.getLogger(Main.class.getName());

    private Main() {
    }

    public static void main(String[] arguments) {
        try {
            run(NodeSettings.read(arguments));
        } catch (RefusedException error) {
            LOGGER.log(Level.SEVERE, error.getMessage());
            exit(EXIT_REFUSED);
        } catch (Throwable error) {
            LOGGER.log(Level.SEVERE, "the node can't start", error);
            exit(EXIT_FAILED);
        }
    }

    private static void run(NodeSettings settings) throws Exception {
        PrometheusMetricsProvider metrics = new PrometheusMetricsProvider();
        PropertiesConfiguration metricsSettings = new PropertiesConfiguration();
        metricsSettings.setProperty("prometheusStatsHttpEnable", false);
        metrics.start(metricsSettings);

        HerdEvents events = new HerdEvents();
        events.listen();
        Server server = NodeServer.create(settings.server(), metrics, settings.tls());
        if (settings.users() != null) {
            server.setUserManager(settings.users());
        }
        NodeStatus status = new NodeStatus(server, events);
        LocalCopies copies = new LocalCopies(server, Clock.systemUTC());
        ActivatorWaker waker = new ActivatorWaker(server, status);
        AdminServer http = new AdminServer(settings.http(), status, waker, copies, metrics);
        http.start();
        if (settings.http().certificate() != null) {
            settings.http().certificate().follow(RenewedCertificate.PERIOD);
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(server, status, settings.handOver()), "stop"));
        server.start();
        if (settings.tls() != null) {
            settings.tls().follow(RenewedCertificate.PERIOD);
        }
        if (settings.users() != null) {
            settings.users().follow(server, MountedUsers.PERIOD);
        }
        waker.start();
        status.contacts().start();
        status.blocked().start(BlockedTablespaces.PERIOD);
        new PlannerWarmer(server).start();
        rehearse(new LedgerRehearsal(NodeCommitLogManager.of(server.getManager()), server.getNodeId(), copies.dataFolder()),
                new BootRehearsal(Path.of(System.getProperty("java.io.tmpdir"))));
        new LogRelease(server, Clock.systemUTC()).start(LogRelease.PERIOD);
        new DisplacedLeader(status, DISPLACED, why -> {
            LOGGER.log(Level.SEVERE, "the process exits, and Kubernetes restarts it: {0}", why);
            exit(EXIT_DISPLACED);
        }).start();
        status.enter(Phase.RUNNING);
        LOGGER.log(Level.INFO, "node {0} serves {1}, HTTP on port {2}",
                new Object[]{server.getNodeId(), server.getJdbcUrl(), String.valueOf(http.port())});
    }

    /** The ledger again while it fails: a new cluster's bookies may come later than its SQL nodes. */
    private static void rehearse(LedgerRehearsal ledger, BootRehearsal boot) {
        Repeated.untilItSucceeds("rehearsal", REHEARSAL_PAUSE, () -> {
            ledger.once();
            boot.tried();
        });
    }

    /** The HTTP port stays open until the JVM ends: probes see the node stopping, not gone. */
    private static void stop(Server server, NodeStatus status, Duration handOver) {
        boolean serving = status.phase() == Phase.RUNNING;
        status.enter(Phase.LEAVING);
        LOGGER.log(Level.INFO, "asked to stop");
        if (serving) {
            Departure.awaitHandOver(status, handOver);
        }
        status.enter(Phase.STOPPING);
        try {
            server.close();
            LOGGER.log(Level.INFO, "stopped");
        } catch (Exception error) {
            LOGGER.log(Level.SEVERE, "did not stop cleanly; the log on the bookies is authoritative", error);
        }
    }

    private static void exit(int status) {
        System.out.flush();
        // halt, since HerdDB's half-started threads would keep exit's shutdown hooks waiting
        Runtime.getRuntime().halt(status);
    }
}
