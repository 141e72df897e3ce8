package io.herdkeeper.node.digest;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.digest.FollowerDigest.TableDigest;
import io.herdkeeper.node.log.FollowerGate.AlreadyPassedException;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Equal copies of a table with a composite key, of which HerdDB's own check says that they differ.
 *
 * <p>HerdDB orders the rows of its digest by the first column of the key alone; rows that are equal there come in the order of the
 * scan. Of a large table (above 100,000 rows; here above 10, see pom.xml) that is the order of pages. A row that is changed after a
 * local checkpoint moves to another page, and each node makes its checkpoints when it likes.
 */
class CompositeKeyTest {

    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final int ROWS = 20;

    private RunningNode leader;
    private RunningNode follower;

    @BeforeEach
    void twoCopiesWhoseRowsAreOnOtherPages() throws Exception {
        String root = BookKeeperForTests.running().newRoot();
        leader = RunningNode.start("n0", root, null);
        leader.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        follower = RunningNode.start("n1", root, null);
        sql("CREATE TABLESPACE 'app','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
        sql("CREATE TABLE app.pair (k int, j int, n string, primary key (k, j))");
        sql("CREATE TABLE app.single (k int primary key, n string)");
        for (int i = 0; i < ROWS; i++) {
            sql("INSERT INTO app.pair(k,j,n) VALUES(1,?,'new')", i);
            sql("INSERT INTO app.single(k,n) VALUES(?,'new')", i);
        }
        leader.manager("app").checkpoint(true, false, false);
        for (int i = 0; i < ROWS / 2; i++) {
            sql("UPDATE app.pair SET n='changed' WHERE k=1 AND j=?", i);
            sql("UPDATE app.single SET n='changed' WHERE k=?", i);
        }
    }

    @AfterEach
    void stop() throws Exception {
        follower.stop();
        leader.stop();
    }

    @Test
    void herdDbFailsThemOursDoesNotAndTheCopyGoesOn() throws Exception {
        sql("tableconsistencycheck app.single");
        sql("tableconsistencycheck app.pair");
        Await.until("the follower has checked both", LIMIT, () -> check("single") != null && check("pair") != null);
        assertTrue(check("single").get("pass").asBoolean(), "with a key of one column the order is that of the key");
        assertFalse(check("pair").get("pass").asBoolean(), "HerdDB has learnt to order by all columns: its verdicts can be trusted");

        LogSequenceNumber last = leader.manager("app").getLog().getLastSequenceNumber();
        CompletableFuture<FollowerDigest.Result> asked = CompletableFuture.supplyAsync(() -> digestBehind(last));
        sql("INSERT INTO app.single(k,n) VALUES(1000,'the entry that is waited for')");
        Map<String, TableDigest> tables = asked.get().tables();
        assertEquals(ofTheLeader("pair"), tables.get("pair"));
        assertEquals(ROWS, tables.get("pair").rows());

        assertEquals("follower", follower.tablespace("app").path("role").asText(), "a verdict of HerdDB's alone changes nothing");
        Await.until("it follows on", LIMIT, () -> follower.tablespace("app").at("/rows/single").asInt() == ROWS + 1);
    }

    /** One entry behind a position, or behind where the follower is by then: an idle log gets NOOPs by itself. */
    private FollowerDigest.Result digestBehind(LogSequenceNumber position) {
        LogSequenceNumber target = new LogSequenceNumber(position.ledgerId, position.offset + 1);
        try {
            return new FollowerDigest(follower.manager("app"), (NodeCommitLog) follower.manager("app").getLog()).at(target, LIMIT, LIMIT);
        } catch (AlreadyPassedException passed) {
            return digestBehind(passed.position());
        } catch (Exception failed) {
            throw new IllegalStateException(failed);
        }
    }

    private TableDigest ofTheLeader(String table) throws Exception {
        RowDigest digest = new RowDigest();
        leader.manager("app").getTableManager(table).scanForIndexRebuild(row ->
                digest.add(ByteBuffer.wrap(row.key.to_array()), ByteBuffer.wrap(row.value.to_array())));
        return new TableDigest(digest.rows(), digest.hex());
    }

    /** What the follower says of HerdDB's check of a table; null while it has not come to it. */
    private JsonNode check(String table) throws Exception {
        JsonNode found = follower.tablespace("app").at("/checks/" + table);
        return found.isMissingNode() ? null : found;
    }

    private void sql(String statement, Object... values) {
        Node.execute(leader.server(), 0, statement, values);
    }
}
