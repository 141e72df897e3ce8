package io.herdkeeper.node.contact;

import herddb.cluster.ZookeeperMetadataStorageManager;
import io.herdkeeper.node.background.Repeated;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.ZooKeeper;

/**
 * Sends ZooKeeper a small request twice a second, in HerdDB's session.
 *
 * <p>The session's own state would be too late: it notices a silent member after two thirds of the session's time. Heartbeats would give
 * false alarms: HerdDB writes none while it checkpoints.
 */
public final class ZooKeeperContact {

    /** Without an answer for so long it counts as silent. */
    private static final Duration BREAK = Duration.ofMillis(1_500);
    private static final Duration PERIOD = Duration.ofMillis(500);
    private static final Logger LOGGER = Logger.getLogger(ZooKeeperContact.class.getName());

    private final Supplier<ZooKeeper> session;
    private final String path;
    private final LongSupplier nanos;
    private final AtomicBoolean asked = new AtomicBoolean();
    private long answeringSince;
    private long lastAnswer;

    ZooKeeperContact(ZookeeperMetadataStorageManager metadata) {
        this(metadata::getZooKeeper, metadata.getBasePath(), System::nanoTime);
    }

    ZooKeeperContact(Supplier<ZooKeeper> session, String path, LongSupplier nanos) {
        this.session = session;
        this.path = path;
        this.nanos = nanos;
        answeringSince = nanos.getAsLong();
        lastAnswer = answeringSince;
    }

    /** Asks from now on, until the thread that it returns is interrupted. */
    Thread start() {
        return Repeated.start("zookeeper-contact", PERIOD, this::ask);
    }

    /** Whether ZooKeeper answers. Never waits: HerdDB locks its session while it opens another one, for as long as that takes. */
    synchronized Period period() {
        long now = nanos.getAsLong();
        boolean answers = now - lastAnswer < BREAK.toNanos();
        return new Period(answers, (now - (answers ? answeringSince : lastAnswer)) / 1e9);
    }

    synchronized void answered() {
        long now = nanos.getAsLong();
        if (now - lastAnswer >= BREAK.toNanos()) {
            answeringSince = now;
        }
        lastAnswer = now;
    }

    private void ask() {
        if (!asked.compareAndSet(false, true)) {
            return;
        }
        try {
            session.get().exists(path, false, (code, asking, context, found) -> {
                asked.set(false);
                if (code == Code.OK.intValue() || code == Code.NONODE.intValue()) {
                    answered();
                }
            }, null);
        } catch (RuntimeException error) {
            asked.set(false);
            LOGGER.log(Level.FINE, "ZooKeeper can't be asked: {0}", error.toString());
        }
    }
}
