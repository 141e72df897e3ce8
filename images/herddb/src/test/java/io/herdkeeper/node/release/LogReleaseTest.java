package io.herdkeeper.node.release;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.cluster.LedgersInfo;
import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.log.LogSequenceNumber;
import herddb.model.TableSpace;
import herddb.server.ServerConfiguration;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Predicate;
import org.apache.bookkeeper.client.BKException.BKNoSuchLedgerExistsOnMetadataServerException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs.Ids;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A leader whose ledgers are soon old enough, and its follower; nobody checkpoints unless the test does. */
class LogReleaseTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final long RETENTION_MILLIS = 4_000;

    private RunningNode leader;
    private RunningNode follower;
    private boolean followerStopped;
    private String uuid;

    @BeforeEach
    void aLogOfSeveralLedgers() throws Exception {
        String root = BookKeeperForTests.running().newRoot();
        leader = RunningNode.start(configuration("n0", root), null);
        leader.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        follower = RunningNode.start(configuration("n1", root), null);
        sql("CREATE TABLESPACE 'app','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
        uuid = metadata().describeTableSpace("app").uuid;
        sql("CREATE TABLE app.t (k int primary key, n int)");
        for (int i = 0; i < 3; i++) {
            sql("INSERT INTO app.t(k,n) VALUES(?,?)", i, i);
            log().rollNewLedger();
        }
        sql("INSERT INTO app.t(k,n) VALUES(3,3)");
        Await.until("the follower has the rows", LIMIT, () -> follower.tablespace("app").at("/rows/t").asInt() == 4);
    }

    @AfterEach
    void stop() throws Exception {
        if (!followerStopped) {
            follower.stop();
        }
        leader.stop();
    }

    @Test
    void aLivingReplicaKeepsWhatItsDiskLacksAndItsNextCheckpointReleasesIt() throws Exception {
        List<Long> before = active();
        leader.manager("app").checkpoint(true, false, false);
        awaitKeptFor(reasons -> reasons.contains("replica n1"));
        assertEquals(before, active());
        LogSequenceNumber needed = follower.status().checkpoint(follower.manager("app"));
        assertTrue(log().isRecoveryAvailable(needed), "the follower can still become the leader from " + needed);
        assertTrue(follower.tablespace("app").get("retainedLog").isNull(), "only a leader drops ledgers");

        follower.manager("app").checkpoint(true, false, false);
        LogSequenceNumber later = follower.status().checkpoint(follower.manager("app"));
        Await.until("what both have on their disks is dropped", LIMIT, () -> active().get(0) == later.ledgerId);
        assertEquals(before.subList(before.indexOf(later.ledgerId), before.size()), active());
        Await.until("nothing is held back", LIMIT, () -> leader.tablespace("app").get("retainedLog").isNull());
        Await.until("the ledger itself is gone", LIMIT, () -> !exists(before.get(0)));
        sql("INSERT INTO app.t(k,n) VALUES(4,4)");
        log().rollNewLedger();
        sql("INSERT INTO app.t(k,n) VALUES(5,5)");
        Await.until("the log goes on", LIMIT, () -> follower.tablespace("app").at("/rows/t").asInt() == 6);
    }

    @Test
    void theLeadersOwnDiskKeepsItsLog() throws Exception {
        follower.manager("app").checkpoint(true, false, false);
        awaitKeptFor(reasons -> reasons.contains("this node's own checkpoint"));
        assertTrue(log().isRecoveryAvailable(leader.status().checkpoint(leader.manager("app"))));
    }

    @Test
    void aPinKeepsTheLogFromItsLedgerOnAndOneThatNobodyUnderstandsKeepsAll() throws Exception {
        List<Long> before = active();
        LogPins pins = new LogPins(metadata());
        pins.set(uuid, "checkpoint", new LogSequenceNumber(before.get(1), 0));
        pins.set(uuid, "stream", new LogSequenceNumber(before.get(0), 0));
        String unreadable = metadata().getBasePath() + "/logPins/" + uuid + "/stream";
        metadata().ensureZooKeeper().setData(unreadable, "?".getBytes(StandardCharsets.UTF_8), -1);
        bothCheckpoint();
        awaitKeptFor("[\"stream\"]"::equals);
        assertEquals(before, active());

        metadata().ensureZooKeeper().delete(unreadable, -1);
        Await.until("the ledgers before the pin are dropped", LIMIT, () -> active().get(0).equals(before.get(1)));
        awaitKeptFor("[\"checkpoint\"]"::equals);
        assertEquals(before.subList(1, before.size()), active());
    }

    @Test
    void aStreamsPinKeepsTheLogForAsLongAsItSaysAndWhatIsNoPinKeepsAll() throws Exception {
        List<Long> before = active();
        String folder = metadata().getBasePath() + "/logPins/" + uuid;
        new LogPins(metadata()).set(uuid, "checkpoint", new LogSequenceNumber(before.get(3), 0));
        String later = folder + "/stream-later";
        create(later, pin(before.get(1), 3600));
        create(folder + "/stream-audit", pin(before.get(0), 3600));
        bothCheckpoint();
        awaitKeptFor("[\"stream-audit\"]"::equals);
        assertEquals(before, active());

        for (String none : List.of("?", "{}", "null", "[1]", "{\"ledgerId\":" + before.get(2) + ",\"entryId\":0}",
                "{\"ledgerId\":" + before.get(2) + ",\"entryId\":0,\"maxAgeSeconds\":0}",
                "{\"ledgerId\":" + before.get(2) + ",\"entryId\":0,\"maxAgeSeconds\":" + Long.MAX_VALUE + "}",
                "{\"ledgerId\":" + before.get(2) + ",\"entryId\":0,\"maxAgeSeconds\":\"soon\"}")) {
            metadata().ensureZooKeeper().setData(folder + "/stream-audit", none.getBytes(StandardCharsets.UTF_8), -1);
            assertEquals(Optional.empty(), new LogPins(metadata()).read(uuid).get("stream-audit"), none);
        }
        assertEquals(before, active());

        // The stream moves on, and after a while nobody moves its pin any more.
        metadata().ensureZooKeeper().setData(folder + "/stream-audit", pin(before.get(1), 3), -1);
        Await.until("what no stream needs is dropped", LIMIT, () -> active().get(0).equals(before.get(1)));
        metadata().ensureZooKeeper().delete(later, -1);
        Await.until("the abandoned pin keeps nothing", LIMIT, () -> active().get(0).equals(before.get(3)));
        assertTrue(metadata().ensureZooKeeper().exists(folder + "/stream-audit", false) != null, "the stream may come back, and is told");
    }

    @Test
    void withoutAHeartbeatNobodyKnowsTheTimeAndNoStreamIsTooLate() throws Exception {
        LogPins pins = new LogPins(metadata());
        String unheard = "a-tablespace-without-replicas";
        pins.set(unheard, "checkpoint", new LogSequenceNumber(1, 0));
        String path = metadata().getBasePath() + "/logPins/" + unheard + "/stream-audit";
        create(path, pin(1, 1));
        long written = metadata().ensureZooKeeper().exists(path, false).getMtime();
        Await.until("ZooKeeper's clock is past its age", LIMIT, () -> {
            pins.set(unheard, "checkpoint", new LogSequenceNumber(1, 0));
            return metadata().ensureZooKeeper().exists(metadata().getBasePath() + "/logPins/" + unheard + "/checkpoint", false)
                    .getMtime() > written + 2_000;
        });
        assertEquals(Optional.of(new LogSequenceNumber(1, 0)), pins.read(unheard).get("stream-audit"));
    }

    @Test
    void aReplicaThatHasNeverToldWhatItsDiskHasKeepsTheLog() throws Exception {
        List<Long> before = active();
        LogPins pins = new LogPins(metadata());
        pins.set(uuid, "checkpoint", new LogSequenceNumber(before.get(0), 0)); // or the log would be dropped while the replica tells
        bothCheckpoint();
        String name = LogPins.ofReplica("n1");
        LogSequenceNumber onDisk = follower.status().checkpoint(follower.manager("app"));
        Await.until("it has told", LIMIT, () -> pins.read(uuid).get(name).equals(Optional.of(onDisk)));
        // As a node with an older program, which tells nothing.
        metadata().ensureZooKeeper().delete(metadata().getBasePath() + "/logPins/" + uuid + "/" + name, -1);
        awaitKeptFor(reasons -> reasons.contains("unknown"));
        metadata().ensureZooKeeper().delete(metadata().getBasePath() + "/logPins/" + uuid + "/checkpoint", -1);
        awaitKeptFor("[\"replica n1, whose position on disk is unknown\"]"::equals);
        assertEquals(before, active());
    }

    @Test
    void aReplicaThatIsDeadForTheWholeRetentionKeepsNothing() throws Exception {
        leader.manager("app").checkpoint(true, false, false);
        follower.stop();
        followerStopped = true;
        long own = leader.status().checkpoint(leader.manager("app")).ledgerId;
        Await.until("it does not count any more", LIMIT, () -> active().get(0) == own);
    }

    @Test
    void aLeadersClockThatIsAheadDropsNothing() throws Exception {
        log().setLedgersRetentionPeriod(Duration.ofHours(1).toMillis());
        List<Long> before = active();
        bothCheckpoint();
        AtomicInteger looks = new AtomicInteger();
        Thread ahead = new LogRelease(leader.server(), ahead(Duration.ofDays(2), looks)).start(Duration.ofMillis(100));
        Await.until("it has looked", LIMIT, () -> looks.get() > 20);
        Await.until("it has ended", LIMIT, () -> {
            ahead.interrupt();
            ahead.join(100);
            return !ahead.isAlive();
        });
        assertEquals(before, active());
    }

    private static Clock ahead(Duration by, AtomicInteger asked) {
        return new Clock() {
            @Override
            public long millis() {
                asked.incrementAndGet();
                return System.currentTimeMillis() + by.toMillis();
            }

            @Override
            public Instant instant() {
                return Instant.ofEpochMilli(millis());
            }

            @Override
            public ZoneId getZone() {
                return ZoneOffset.UTC;
            }

            @Override
            public Clock withZone(ZoneId zone) {
                return this;
            }
        };
    }

    @Test
    void anIdleFollowerComesToTheNewLeadersLedgerAndKeepsTheOldOnesNoLonger() throws Exception {
        TableSpace before = metadata().describeTableSpace("app");
        assertTrue(metadata().updateTableSpace(TableSpace.builder().cloning(before).leader("n1").build(), before));
        Await.until("the other one leads", LIMIT, () -> follower.tablespace("app").path("role").asText().equals("leader"));
        long newest = active().get(active().size() - 1);
        Await.until("the follower is there, though nobody writes", LIMIT,
                () -> leader.tablespace("app").at("/log/ledgerId").asLong() == newest);
        bothCheckpoint();
        Await.until("the others are dropped", LIMIT, () -> active().equals(List.of(newest)));
    }

    @Test
    void aLeaderThatWasReplacedDropsNothing() throws Exception {
        NodeCommitLog old = log();
        long oldest = active().get(0);
        LedgersInfo another = metadata().getActualLedgersList(uuid);
        metadata().ensureZooKeeper().setData(metadata().getBasePath() + "/ledgers/" + uuid, another.serialize(), another.getZkVersion());
        assertThrows(RuntimeException.class, () -> old.dropOldest(oldest), "its list is not the newest one");
        assertEquals(oldest, active().get(0));
        assertTrue(exists(oldest));
    }

    @Test
    void herdDbsOwnWayDropsNothing() throws Exception {
        List<Long> before = active();
        Await.until("they are old enough", LIMIT, () -> !leader.tablespace("app").get("retainedLog").isNull());
        log().dropOldLedgers(log().getLastSequenceNumber());
        assertEquals(before, active());
    }

    private void create(String path, byte[] data) throws Exception {
        metadata().ensureZooKeeper().create(path, data, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    }

    private static byte[] pin(long ledger, int maxAgeSeconds) {
        String json = "{\"ledgerId\":" + ledger + ",\"entryId\":0,\"maxAgeSeconds\":" + maxAgeSeconds + "}";
        return json.getBytes(StandardCharsets.UTF_8);
    }

    private void bothCheckpoint() throws Exception {
        leader.manager("app").checkpoint(true, false, false);
        follower.manager("app").checkpoint(true, false, false);
    }

    /** Waits for what the leader says of the ledgers that it keeps though they are old enough: it looks once in a while only. */
    private void awaitKeptFor(Predicate<String> expected) throws Exception {
        AtomicReference<String> reasons = new AtomicReference<>();
        try {
            Await.until("the reasons", LIMIT, () -> {
                reasons.set(leader.tablespace("app").at("/retainedLog/keptFor").toString());
                return expected.test(reasons.get());
            });
        } catch (AssertionError late) {
            throw new AssertionError("it is kept for " + reasons, late);
        }
    }

    private boolean exists(long ledger) throws Exception {
        try (BookKeeper bookKeeper = new BookKeeper(BookKeeperForTests.running().zooKeeperAddress())) {
            new BookKeeperAdmin(bookKeeper).openLedgerNoRecovery(ledger).close();
            return true;
        } catch (BKNoSuchLedgerExistsOnMetadataServerException gone) {
            return false;
        }
    }

    private static ServerConfiguration configuration(String id, String root) throws Exception {
        return Node.configuration(id, root, BookKeeperForTests.running().newFolder())
                .set(ServerConfiguration.PROPERTY_BOOKKEEPER_LEDGERS_RETENTION_PERIOD, RETENTION_MILLIS)
                .set(ServerConfiguration.PROPERTY_CHECKPOINT_PERIOD, 0);
    }

    private List<Long> active() {
        return metadata().getActualLedgersList(uuid).getActiveLedgers();
    }

    private NodeCommitLog log() {
        return (NodeCommitLog) leader.manager("app").getLog();
    }

    private ZookeeperMetadataStorageManager metadata() {
        return (ZookeeperMetadataStorageManager) leader.server().getMetadataStorageManager();
    }

    private void sql(String statement, Object... values) {
        Node.execute(leader.server(), 0, statement, values);
    }
}
