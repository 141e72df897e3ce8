package io.herdkeeper.node.evidence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import herddb.core.AbstractTableManager;
import herddb.core.TableSpaceManager;
import herddb.log.CommitLogResult;
import herddb.log.LogEntryFactory;
import herddb.log.LogSequenceNumber;
import herddb.metadata.MetadataStorageManager;
import herddb.model.Record;
import herddb.model.TableSpace;
import herddb.server.ServerConfiguration;
import herddb.utils.Bytes;
import io.herdkeeper.node.digest.RowDigest;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.refusals.OrderRefusedException;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A follower whose rows were falsified, in memory and on its disk: off the list, moved aside, on the list again. */
class FalsifiedCopyTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final int ROWS = 20;
    private static final String TOKEN = "a-token";
    private static final ObjectMapper JSON = new ObjectMapper();

    private RunningNode leader;
    private RunningNode follower;
    private Path disk;
    private String uuid;

    @BeforeEach
    void aFollowerHasOtherRowsThanTheLog() throws Exception {
        String root = BookKeeperForTests.running().newRoot();
        disk = BookKeeperForTests.running().newFolder();
        Path token = Files.writeString(BookKeeperForTests.running().newFolder().resolve("token"), TOKEN);
        leader = RunningNode.start(configuration("n0", root, BookKeeperForTests.running().newFolder()), null);
        leader.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        follower = RunningNode.start(configuration("n1", root, disk), token);
        sql("CREATE TABLESPACE 'app','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
        uuid = metadata().describeTableSpace("app").uuid;
        sql("CREATE TABLE app.t (k int primary key, n int)");
        for (int i = 0; i < ROWS; i++) {
            sql("INSERT INTO app.t(k,n) VALUES(?,?)", i, i);
        }
        follows(ROWS);
        assertEquals(digest(leader), digest(follower));
        falsify();
        assertNotEquals(digest(leader), digest(follower));
    }

    @AfterEach
    void stop() throws Exception {
        follower.stop();
        leader.stop();
    }

    @Test
    void onItsDiskWrongRowsComeBackAndMovedAsideItIsMadeAnewEqualAndLeads() throws Exception {
        refusedAsLongAsItIsUsed();
        takeOff();
        replicas("n0", "n1");
        follows(ROWS);
        assertNotEquals(digest(leader), digest(follower));
        assertEquals(200, follower.order("/tablespaces/app/bar?uuid=" + uuid, TOKEN).statusCode());
        assertTrue(follower.tablespace("app").get("barred").asBoolean());
        takeOff();
        refusedForAnotherTablespace();
        sql("INSERT INTO app.t(k,n) VALUES(1000,1000)");
        JsonNode moved = JSON.readTree(setAside(200));
        Path evidence = Path.of(moved.get("evidence").asText());
        assertTrue(evidence.startsWith(disk), evidence.toString());
        assertTrue(Files.exists(evidence.resolve("checkpoint." + moved.at("/checkpoint/ledgerId").asLong() + "."
                + moved.at("/checkpoint/entryId").asLong() + ".checkpoint")), "the evidence has the tables up to this LSN");
        assertTrue(JSON.readTree(setAside(200)).get("evidence").isNull(), "there is nothing left to be moved");
        assertEquals(List.of(evidence), evidences());

        replicas("n0", "n1");
        follows(ROWS + 1);
        assertEquals(digest(leader), digest(follower));
        assertFalse(follower.tablespace("app").get("barred").asBoolean(), "the copy that was barred is the evidence now");
        leader.checked("app");
        Await.until("it has checked", LIMIT, () -> follower.tablespace("app").at("/checks/t/pass").asBoolean());
        TableSpace before = metadata().describeTableSpace("app");
        assertTrue(metadata().updateTableSpace(TableSpace.builder().cloning(before).leader("n1").build(), before));
        Await.until("it leads", LIMIT, () -> follower.tablespace("app").path("role").asText().equals("leader"));
        Node.executeIn("app", follower.server(), 0, "INSERT INTO app.t(k,n) VALUES(1001,1001)");
        assertEquals(ROWS + 2, follower.tablespace("app").at("/rows/t").asInt());
    }

    @Test
    void onlyTheNewestEvidenceIsKept() throws Exception {
        takeOff();
        setAside(200);
        List<Path> first = evidences();
        replicas("n0", "n1");
        follows(ROWS);
        falsify();
        takeOff();
        setAside(200);
        assertEquals(1, evidences().size());
        assertNotEquals(first, evidences());
    }

    @Test
    void whatADownloadThatDidNotEndHadKeptIsMovedAside() throws Exception {
        takeOff();
        Path data = disk.resolve("data");
        Files.move(data.resolve(uuid + ".tablespace"), data.resolve(uuid + ".replaced"));
        Files.createDirectories(data.resolve(uuid + ".tablespace").resolve("half.table"));
        assertTrue(JSON.readTree(setAside(200)).at("/checkpoint/ledgerId").asLong() >= 0);
        assertFalse(Files.exists(data.resolve(uuid + ".replaced")), "the next copy would begin with it");
        replicas("n0", "n1");
        follows(ROWS);
        assertEquals(digest(leader), digest(follower));
    }

    @Test
    void aCopyThatHasStoppedIsNotWrittenAndOneThatIsBeingWrittenIsNotMoved() throws Exception {
        LocalCopies copies = new LocalCopies(follower.server(), Clock.systemUTC());
        TableSpaceManager copy = follower.manager("app");
        CountDownLatch writing = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        copy.setAfterTableCheckPointAction(() -> {
            writing.countDown();
            await(goOn);
        });
        CompletableFuture<LogSequenceNumber> checkpoint = CompletableFuture.supplyAsync(() -> write(copies, copy));
        await(writing);
        OrderRefusedException refused = assertThrows(OrderRefusedException.class, () -> copies.setAside("app", uuid));
        assertTrue(refused.getMessage().contains("is being written"), refused.getMessage());
        goOn.countDown();
        LogSequenceNumber written = checkpoint.get();
        assertEquals(follower.status().checkpoint(copy), written);

        takeOff();
        setAside(200);
        OrderRefusedException late = assertThrows(OrderRefusedException.class, () -> copies.checkpoint(copy));
        assertTrue(late.getMessage().contains("has stopped"), late.getMessage());
        assertFalse(Files.exists(disk.resolve("data").resolve(uuid + ".tablespace")), "the next copy would begin with it");
    }

    @Test
    void aCopyThatRunsIsNotMovedWhateverLettersItsNameHas() throws Exception {
        sql("CREATE TABLESPACE 'Orders','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
        Await.until("it runs", LIMIT, () -> follower.manager("Orders") != null);
        LocalCopies copies = new LocalCopies(follower.server(), Clock.systemUTC());
        Lock activator = HerdInternals.generalLock(follower.server().getManager()).readLock();
        activator.lock();
        try {
            sql("ALTER TABLESPACE 'Orders','leader:n0','replica:n0','expectedreplicacount:1'");
            OrderRefusedException refused = assertThrows(OrderRefusedException.class,
                    () -> copies.setAside("orders", metadata().describeTableSpace("orders").uuid));
            assertTrue(refused.getMessage().contains("still runs"), refused.getMessage());
        } finally {
            activator.unlock();
        }
    }

    private static LogSequenceNumber write(LocalCopies copies, TableSpaceManager copy) {
        try {
            return copies.checkpoint(copy);
        } catch (OrderRefusedException error) {
            throw new IllegalStateException(error);
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            assertTrue(latch.await(LIMIT.toSeconds(), TimeUnit.SECONDS));
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private void refusedAsLongAsItIsUsed() throws Exception {
        assertTrue(setAside(409).contains("remove it from the replica list first"));
        assertEquals(401, follower.ask("POST", "/tablespaces/app/set-aside?uuid=" + uuid).statusCode());
    }

    private void refusedForAnotherTablespace() throws Exception {
        assertTrue(order("another", 409).contains("not another"));
        assertTrue(order("..", 400).contains("uuid=.."));
        assertEquals(404, follower.order("/tablespaces/none/set-aside?uuid=" + uuid, TOKEN).statusCode());
        assertTrue(Files.isDirectory(disk.resolve("data").resolve(uuid + ".tablespace")));
        assertEquals(List.of(), evidences());
    }

    /** One row gets another's value: as silent a difference as can be, and no change of the number of rows. */
    private void falsify() throws Exception {
        AbstractTableManager table = follower.manager("app").getTableManager("t");
        List<Record> rows = new ArrayList<>();
        table.scanForIndexRebuild(rows::add);
        Bytes value = rows.get(1).value;
        LogSequenceNumber here = follower.manager("app").getLog().getLastSequenceNumber();
        table.apply(new CommitLogResult(here, false, true), LogEntryFactory.update(table.getTable(), rows.get(0).key, value, null), false);
        follower.manager("app").checkpoint(true, false, false);
    }

    private static String digest(RunningNode node) throws Exception {
        RowDigest digest = new RowDigest();
        node.manager("app").getTableManager("t").scanForIndexRebuild(digest::add);
        return digest.hex();
    }

    private void follows(int rows) throws Exception {
        Await.until("it follows", LIMIT, () -> follower.tablespace("app").path("role").asText().equals("follower")
                && follower.tablespace("app").path("ready").asBoolean() && follower.tablespace("app").at("/rows/t").asInt() == rows);
    }

    private void takeOff() throws Exception {
        replicas("n0");
        Await.until("its copy has stopped", LIMIT, () -> follower.manager("app") == null);
    }

    private String setAside(int status) throws Exception {
        return order(uuid, status);
    }

    private String order(String meant, int status) throws Exception {
        HttpResponse<String> answer = follower.order("/tablespaces/app/set-aside?uuid=" + meant, TOKEN);
        assertEquals(status, answer.statusCode(), answer.body());
        return answer.body();
    }

    private List<Path> evidences() throws Exception {
        Path kept = disk.resolve("data").resolve("evidence");
        if (!Files.exists(kept)) {
            return List.of();
        }
        try (Stream<Path> folders = Files.list(kept)) {
            return folders.toList();
        }
    }

    private static ServerConfiguration configuration(String id, String root, Path folder) throws Exception {
        return Node.configuration(id, root, folder).set(ServerConfiguration.PROPERTY_CHECKPOINT_PERIOD, 0);
    }

    private void sql(String statement, Object... values) {
        Node.execute(leader.server(), 0, statement, values);
    }

    private MetadataStorageManager metadata() {
        return leader.server().getMetadataStorageManager();
    }

    /** As the operator changes the list. */
    private void replicas(String... nodes) throws Exception {
        TableSpace before = metadata().describeTableSpace("app");
        assertTrue(metadata().updateTableSpace(TableSpace.builder().cloning(before).replicas(Set.of(nodes)).build(), before));
    }
}
