package io.herdkeeper.node.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.core.AbstractTableManager;
import herddb.log.CommitLogResult;
import herddb.log.LogEntry;
import herddb.log.LogEntryFactory;
import herddb.log.LogSequenceNumber;
import herddb.model.Record;
import herddb.model.Table;
import io.herdkeeper.node.digest.RowDigest;
import io.herdkeeper.node.digest.StoredRows;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.log.NodeCommitLogManager;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.sql.Timestamp;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The leader's rows against the follower's, with both nodes as they run. */
class FullCheckTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final Duration STOP = Duration.ofMillis(20);
    private static final int ROWS = 100;

    private static RunningNode leader;
    private static RunningNode follower;
    private static int tablespaces;
    private static String app;

    @BeforeAll
    static void startLeaderAndFollower() throws Exception {
        String root = BookKeeperForTests.running().newRoot();
        leader = RunningNode.start("n0", root, null);
        leader.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        follower = RunningNode.start("n1", root, null);
    }

    @BeforeEach
    void makeATablespaceThatIsNobodyElses() {
        app = "app" + tablespaces++;
        sql("CREATE TABLESPACE '" + app + "','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
    }

    @AfterAll
    static void stop() throws Exception {
        follower.stop();
        leader.stop();
    }

    @Test
    void equalCopiesPassWhateverTheirTypesValuesAndNamesAre() throws Exception {
        sql("CREATE TABLE " + app + ".everything (k long primary key, i int, s string, b blob, t timestamp, d double, f bool, a floata)");
        sql("INSERT INTO " + app + ".everything(k,i,s,b,t,d,f,a) VALUES(?,?,?,?,?,?,?,?)",
                -3L, -5, "caff\u00e8 \ud83d\ude00", new byte[]{0, -1, 7}, new Timestamp(1_700_000_000_123L), 1.5, true, new float[]{1, -2.5f});
        sql("INSERT INTO " + app + ".everything(k) VALUES(?)", Long.MAX_VALUE);
        sql("INSERT INTO " + app + ".everything(k,s) VALUES(?,?)", 0L, "");
        sql("CREATE TABLE " + app + ".required (k string primary key, i int not null, s string not null, d double not null)");
        sql("INSERT INTO " + app + ".required(k,i,s,d) VALUES('',1,'',0)");
        sql("INSERT INTO " + app + ".required(k,i,s,d) VALUES('\u00fc',1,'x',0)");
        sql("CREATE TABLE " + app + ".`select` (`order` int, `from` string, `where` timestamp, primary key(`order`,`from`))");
        sql("INSERT INTO " + app + ".`select`(`order`,`from`) VALUES(1,'table')");
        sql("CREATE TABLE " + app + ".`empty` (k int primary key)");
        sql("CREATE TABLE " + app + ".indexed (k int primary key, n int)");
        sql("CREATE UNIQUE INDEX by_n ON " + app + ".indexed(n)");
        sql("INSERT INTO " + app + ".indexed(k,n) VALUES(1,1)");
        Set<String> tables = new TreeSet<>(Set.of("everything", "required", "select", "empty", "indexed"));

        FullCheck check = leader.checked(app);
        assertNull(check.error());
        assertEquals(tables, check.tables().keySet());
        assertEquals(Map.of(), check.notChecked());
        Map<String, Verdict> verdicts = verdicts(check);
        assertEquals(tables, verdicts.keySet());
        verdicts.forEach((table, verdict) -> {
            assertTrue(verdict.pass(), table);
            assertEquals("n0", verdict.leader());
            assertTrue(verdict.position().lsn().after(check.after().lsn()) && !verdict.position().lsn().after(check.until().lsn()), table);
        });
    }

    /** HerdDB's own digest has them in the order of pages: a row that is changed after a local checkpoint moves to another one. */
    @Test
    void equalCopiesOfACompositeKeyPassThoughTheirRowsAreOnOtherPages() throws Exception {
        sql("CREATE TABLE " + app + ".pair (k int, j int, n string, primary key (k, j))");
        for (int i = 0; i < ROWS; i++) {
            sql("INSERT INTO " + app + ".pair(k,j,n) VALUES(?,?,'new')", i % 3, i);
        }
        leader.manager(app).checkpoint(true, false, false);
        for (int i = 0; i < ROWS; i += 2) {
            sql("UPDATE " + app + ".pair SET n='changed' WHERE k=? AND j=?", i % 3, i);
        }
        assertTrue(verdicts(leader.checked(app)).get("pair").pass());
    }

    @Test
    void rowsThatAnOpenTransactionHasChangedAreComparedAsCommittedAndNotWaitedFor() throws Exception {
        table("t");
        long open = Node.begin(leader.server(), app);
        Node.execute(leader.server(), open, "UPDATE " + app + ".t SET n=-1 WHERE k=1");
        Node.execute(leader.server(), open, "DELETE FROM " + app + ".t WHERE k=2");
        Node.execute(leader.server(), open, "INSERT INTO " + app + ".t(k,n) VALUES(5000,1)");
        Node.execute(leader.server(), open, "CREATE TABLE " + app + ".uncommitted (k int primary key)");
        FullCheck check = leader.checked(app);
        assertEquals(Set.of("t"), check.tables().keySet());
        assertTrue(verdicts(check).get("t").pass());
        Node.execute(leader.server(), 0, "EXECUTE COMMITTRANSACTION '" + app + "'," + open);
        FullCheck later = leader.checked(app);
        assertEquals(Set.of("t", "uncommitted"), later.tables().keySet());
        assertTrue(verdicts(later).get("t").pass());
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anotherValueOfOneRowIsFoundWhoeverHasIt(boolean leaderHasIt) throws Exception {
        table("falsified");
        table("left_alone");
        falsify(leaderHasIt ? leader : follower, "falsified", 40);
        Map<String, Verdict> verdicts = verdicts(leader.checked(app));
        assertFalse(verdicts.get("falsified").pass());
        assertTrue(verdicts.get("left_alone").pass());
        assertEquals("follower", follower.tablespace(app).path("role").asText(), "a verdict ends nothing");

        sql("UPDATE " + app + ".falsified SET n=7 WHERE k=40");
        assertTrue(verdicts(leader.checked(app)).get("falsified").pass(), "both have the new value");
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aRowThatOneLacksIsFound(boolean leaderLacksIt) throws Exception {
        table("t");
        RunningNode node = leaderLacksIt ? leader : follower;
        AbstractTableManager table = node.manager(app).getTableManager("t");
        apply(node, table, LogEntryFactory.delete(table.getTable(), rows(table).get(3).key, null));
        assertFalse(verdicts(leader.checked(app)).get("t").pass());
    }

    @Test
    void valuesThatAreOneTextWhenPutTogetherAreNotTakenForEqual() throws Exception {
        sql("CREATE TABLE " + app + ".t (k int primary key, a string, b string)");
        sql("INSERT INTO " + app + ".t(k,a,b) VALUES(1,'ab','c')");
        sql("INSERT INTO " + app + ".t(k,a,b) VALUES(2,'a','bc')");
        follows("t", 2);
        falsify(follower, "t", 1);
        assertFalse(verdicts(leader.checked(app)).get("t").pass());
    }

    @Test
    void aTableThatTheFollowerLacksIsFoundThoughItIsEmpty() throws Exception {
        sql("CREATE TABLE " + app + ".t (k int primary key)");
        FullCheck check = leader.checked(app);
        assertTrue(verdicts(check).get("t").pass());
        FollowerChecks checks = new FollowerChecks();
        Table other = Table.builder().cloning(leader.manager(app).getTableManager("t").getTable()).uuid("another").build();
        checks.compare(follower.manager(app), check.until().lsn(), entry(other, 0, true), () -> false);
        assertFalse(checks.verdicts(uuid()).get("t").pass());
    }

    @Test
    void aTableIsReadInPartsThatAreAsShortAsAllowedAndAllOfItIsCompared() throws Exception {
        table("t");
        FullCheck check = inParts();
        assertNull(check.error());
        assertTrue(check.longestStopMillis() <= STOP.toMillis(), check.toString());
        assertTrue(check.writesStoppedMillis() >= ROWS, "one ms for each row, by this clock: " + check);
        assertEquals(check.tables().get("t"), check.writesStoppedMillis());
        assertTrue(entries(check) >= ROWS / STOP.toMillis(), check.toString());
        assertTrue(verdicts(check).get("t").pass());
        for (int key : new int[]{0, ROWS / 2, ROWS - 1}) {
            falsify(follower, "t", key);
            assertFalse(verdicts(inParts()).get("t").pass(), "row " + key);
            sql("UPDATE " + app + ".t SET n=7 WHERE k=" + key);
            assertTrue(verdicts(inParts()).get("t").pass());
        }
    }

    @Test
    void writesGoOnBetweenPartsAndEqualCopiesPassAllTheSame() throws Exception {
        table("t");
        AtomicBoolean ended = new AtomicBoolean();
        AtomicInteger written = new AtomicInteger();
        CompletableFuture<Void> writer = CompletableFuture.runAsync(() -> {
            for (int i = 0; !ended.get(); i++) {
                sql("UPDATE " + app + ".t SET n=n+1 WHERE k=" + i * 37 % ROWS);
                sql("DELETE FROM " + app + ".t WHERE k=" + i * 53 % ROWS);
                sql("INSERT INTO " + app + ".t(k,n) VALUES(?,?)", i * 53 % ROWS, i);
                written.incrementAndGet();
            }
        });
        try {
            Await.until("something is written beside a check", LIMIT, () -> {
                int before = written.get();
                FullCheck check = inParts();
                boolean beside = written.get() - before > 1;
                assertNull(check.error());
                assertTrue(verdicts(check).get("t").pass());
                return beside;
            });
        } finally {
            ended.set(true);
            writer.get();
        }
    }

    @Test
    void statementsThatDoNotEndAreNotWaitedForForEver() throws Exception {
        table("t");
        long statement = HerdInternals.statementLock(leader.manager(app)).readLock();
        try {
            FullChecks checks = new FullChecks(System::nanoTime, Duration.ZERO);
            FullCheck check = ended(checks);
            assertEquals("table t: statements were running for 0 s", check.error());
            assertEquals(Map.of(), check.tables());
            assertTrue(check.writesStoppedMillis() >= STOP.toMillis() / 2, "who waits for the lock keeps others waiting: " + check);
        } finally {
            HerdInternals.statementLock(leader.manager(app)).unlockRead(statement);
        }
    }

    @Test
    void aTableThatIsDroppedBetweenTwoPartsIsLeftOut() throws Exception {
        table("t");
        Table table = leader.manager(app).getTableManager("t").getTable();
        LedTable parts = new LedTable(leader.manager(app), table, "a-check", STOP, msPerReading());
        assertNotNull(parts.next().get());
        assertFalse(parts.isComplete());
        sql("DROP TABLE " + app + ".t");
        table("t");
        assertNull(parts.next());
        assertTrue(parts.isGone());
        assertFalse(parts.isComplete());
    }

    @Test
    void aFollowerThatMissedAPartHasNotPassedAndOneThatDiffersIsFoundAllTheSame() throws Exception {
        table("t");
        Table table = follower.manager(app).getTableManager("t").getTable();
        LogSequenceNumber here = log(follower).appliedPosition();
        FollowerChecks checks = new FollowerChecks();
        checks.compare(follower.manager(app), here, entry(table, 1, true), () -> false);
        assertEquals(Map.of(), checks.verdicts(uuid()), "the first part came by before");
        checks.compare(follower.manager(app), here, entry(table, 0, true), () -> true);
        assertEquals(Map.of(), checks.verdicts(uuid()), "the follower was about to stop");
        checks.compare(follower.manager(app), here, entry(table, 0, true), () -> false);
        assertTrue(checks.verdicts(uuid()).get("t").pass());
        checks.compare(follower.manager(app), here, entry(table, 3, false), () -> false);
        assertFalse(checks.verdicts(uuid()).get("t").pass());
    }

    @Test
    void aFollowerWithHerdDbsOwnCodeFollowsOn() throws Exception {
        table("t");
        FollowerChecks ours = FollowerChecks.of(follower.server().getManager());
        try {
            NodeCommitLogManager.of(follower.server().getManager()).compareBy(null);
            FullCheck check = leader.checked(app);
            sql("INSERT INTO " + app + ".t(k,n) VALUES(?,?)", ROWS, ROWS);
            follows("t", ROWS + 1);
            assertFalse(check.until().lsn().after(log(follower).appliedPosition()));
            assertEquals(Map.of(), ours.verdicts(uuid()));
        } finally {
            NodeCommitLogManager.of(follower.server().getManager()).compareBy(ours);
        }
    }

    @Test
    void aLeaderWithHerdDbsOwnCodeIsFollowedOn() throws Exception {
        table("t");
        falsify(follower, "t", 3);
        leader.manager(app).createAndWriteTableCheksum(leader.manager(app), app, "t", null);
        sql("INSERT INTO " + app + ".t(k,n) VALUES(?,?)", ROWS, ROWS);
        follows("t", ROWS + 1);
        assertTrue(follower.tablespace(app).get("checks").isEmpty(), "its digest can fail equal copies");
    }

    /** A table with rows that the follower has, too. */
    private static void table(String name) throws Exception {
        sql("CREATE TABLE " + app + "." + name + " (k int primary key, n int)");
        for (int i = 0; i < ROWS; i++) {
            sql("INSERT INTO " + app + "." + name + "(k,n) VALUES(?,?)", i, i);
        }
        follows(name, ROWS);
    }

    private static void follows(String table, int rows) throws Exception {
        Await.until("it follows", LIMIT, () -> follower.tablespace(app).at("/rows/" + table).asInt() == rows);
    }

    /** A check whose clock goes on by a ms each time somebody looks at it, so that a part has some rows only. */
    private static FullCheck inParts() throws Exception {
        return ended(new FullChecks(msPerReading(), LIMIT));
    }

    private static LongSupplier msPerReading() {
        AtomicLong clock = new AtomicLong();
        return () -> clock.addAndGet(1_000_000);
    }

    private static FullCheck ended(FullChecks checks) throws Exception {
        checks.start(leader.manager(app), STOP);
        Await.until("the full check has ended", LIMIT, () -> checks.last(uuid()).endedAtMillis() != null);
        return checks.last(uuid());
    }

    private static long entries(FullCheck check) {
        assertEquals(check.after().ledgerId(), check.until().ledgerId());
        return check.until().entryId() - check.after().entryId();
    }

    /** What the follower has found, once it has come to the end of the check. */
    private static Map<String, Verdict> verdicts(FullCheck check) throws Exception {
        Await.until("the follower has booted, and has seen all of the check", LIMIT,
                () -> follower.manager(app) != null && !check.until().lsn().after(log(follower).appliedPosition()));
        return FollowerChecks.of(follower.server().getManager()).verdicts(uuid());
    }

    /** What a leader with the rows of this follower would write, of a whole table. */
    private static LogEntry entry(Table table, int part, boolean right) {
        RowDigest digest = new RowDigest();
        rows(follower.manager(app).getTableManager(table.name)).forEach(digest::add);
        String hex = right ? digest.hex() : "00";
        return new CheckEntry("a-check", "n0", table.uuid, part, null, null, digest.rows(), hex).of(table);
    }

    private static NodeCommitLog log(RunningNode node) {
        return (NodeCommitLog) node.manager(app).getLog();
    }

    private static String uuid() {
        return leader.manager(app).getTableSpaceUUID();
    }

    /** A row gets another one's value, in the memory of one node alone. */
    private static void falsify(RunningNode node, String name, int row) {
        AbstractTableManager table = node.manager(app).getTableManager(name);
        List<Record> rows = rows(table);
        apply(node, table, LogEntryFactory.update(table.getTable(), rows.get(row).key, rows.get((row + 1) % rows.size()).value, null));
    }

    private static void apply(RunningNode node, AbstractTableManager table, LogEntry entry) {
        LogSequenceNumber here = log(node).appliedPosition();
        table.apply(new CommitLogResult(here, false, true), entry, false);
    }

    private static List<Record> rows(AbstractTableManager table) {
        List<Record> rows = new ArrayList<>();
        StoredRows.visit(table, null, null, rows::add);
        return rows;
    }

    private static void sql(String statement, Object... values) {
        Node.execute(leader.server(), 0, statement, values);
    }
}
