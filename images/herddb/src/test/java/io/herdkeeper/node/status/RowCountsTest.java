package io.herdkeeper.node.status;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.core.TableSpaceManager;
import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.lang.reflect.Field;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.locks.StampedLock;
import org.junit.jupiter.api.Test;

/** A leader's numbers of rows, which a follower's are compared with at the same position. */
class RowCountsTest {

    private static final Duration LIMIT = Duration.ofSeconds(30);

    /** The lock of a tablespace's statements, beside which something happens each time that it was looked at. */
    private static final class LookedAt extends StampedLock {

        private static final long serialVersionUID = 1L;

        private final transient Queue<Runnable> then = new ArrayDeque<>();

        @Override
        public boolean isReadLocked() {
            boolean was = super.isReadLocked();
            Runnable next = then.poll();
            if (next != null) {
                next.run();
            }
            return was;
        }
    }

    @Test
    void areNotExactWhereARowWasAcknowledgedAndNotAppliedYet() throws Exception {
        RunningNode node = RunningNode.start("n0", BookKeeperForTests.running().newRoot(), null);
        node.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        Node.execute(node.server(), 0, "CREATE TABLESPACE 'app','leader:n0','replica:n0','expectedreplicacount:1','wait:30000'");
        Node.execute(node.server(), 0, "CREATE TABLE app.t (k int primary key)");
        TableSpaceManager tablespace = node.manager("app");
        NodeCommitLog log = (NodeCommitLog) tablespace.getLog();
        LogSequenceNumber before = log.appliedPosition();
        LookedAt lock = new LookedAt();
        CountDownLatch apply = new CountDownLatch(1);
        CompletableFuture<Void> insert = new CompletableFuture<>();
        lock.then.add(() -> {
            applyNothingUntil(apply, (ThreadPoolExecutor) tablespace.getCallbacksExecutor());
            CompletableFuture.runAsync(() -> Node.execute(node.server(), 0, "INSERT INTO app.t(k) VALUES(1)"))
                    .thenAccept(insert::complete);
            await("the row is acknowledged", () -> log.appliedPosition().after(before));
        });
        lock.then.add(() -> {
            apply.countDown();
            insert.join();
        });
        Field statements = TableSpaceManager.class.getDeclaredField("generalLock");
        statements.setAccessible(true);
        statements.set(tablespace, lock);

        RowCounts counts = node.status().tablespaces().stream().filter(one -> one.name().equals("app")).findAny().orElseThrow().counts();
        assertTrue(!counts.exact() || counts.position().lsn().equals(before) == (counts.tables().get("t") == 0), counts.toString());
        counts = node.status().tablespaces().stream().filter(one -> one.name().equals("app")).findAny().orElseThrow().counts();
        assertTrue(counts.exact(), counts.toString());
        assertEquals(1, counts.tables().get("t"));
        node.stop();
    }

    private static void applyNothingUntil(CountDownLatch apply, ThreadPoolExecutor executor) {
        for (int thread = 0; thread < executor.getMaximumPoolSize(); thread++) {
            executor.execute(() -> {
                try {
                    apply.await();
                } catch (InterruptedException error) {
                    Thread.currentThread().interrupt();
                }
            });
        }
    }

    private static void await(String what, java.util.concurrent.Callable<Boolean> condition) {
        try {
            Await.until(what, LIMIT, condition);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }
}
