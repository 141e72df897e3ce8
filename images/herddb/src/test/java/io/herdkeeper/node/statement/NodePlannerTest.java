package io.herdkeeper.node.statement;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.core.DBManager;
import herddb.model.StatementExecutionException;
import herddb.model.commands.ScanStatement;
import herddb.sql.CalcitePlanner;
import herddb.sql.TranslatedQuery;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.InterposedPlanner;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.lang.reflect.Field;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.calcite.schema.SchemaPlus;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** HerdDB's list of functions, which grows with each plan, and at which statements that are planned at once meet. */
class NodePlannerTest {

    /** So many overflow the stack of HerdDB's planner. Still more overflow that of its parser, which says so. */
    private static final int PARTS = 3_000;
    private static final TranslatedQuery PLAN = new TranslatedQuery(null, null);

    private static RunningNode leader;

    private final AtomicInteger forgotten = new AtomicInteger();

    @BeforeAll
    static void start() throws Exception {
        leader = RunningNode.start("n0", BookKeeperForTests.running().newRoot(), null);
        leader.server().waitForTableSpaceBoot("herd", 30_000, true);
        Node.execute(leader.server(), 0, "CREATE TABLE herd.t (k int primary key, n int)");
    }

    @AfterAll
    static void stop() throws Exception {
        leader.stop();
    }

    @Test
    void aStatementThatMetAnotherOneIsPlannedOnceMoreWithAnotherSchema() {
        NodePlanner planner = over(new ArrayIndexOutOfBoundsException("of two plans"));
        assertSame(PLAN, plan(planner, "SELECT 1"));
        assertEquals(1, forgotten.get());
    }

    @Test
    void aStatementThatCanNotBePlannedIsRefused() {
        NodePlanner planner = over(new ClassCastException("once"), new ClassCastException("and again"));
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> plan(planner, "SELECT 1"));
        assertTrue(refusal.getMessage().startsWith("HerdDB can't plan this statement: "), refusal.getMessage());
    }

    @ParameterizedTest
    @ValueSource(strings = {" OR n=0", "+n", " AND n<>0"})
    void aConditionOfTooManyPartsIsRefused(String part) {
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class,
                () -> Node.execute(leader.server(), 0, "DELETE FROM t WHERE k=1 AND n=7" + part.repeat(PARTS)));
        assertTrue(refusal.getMessage().contains("too many parts"), refusal.getMessage());
    }

    @Test
    void aStatementThatAnotherNodeMayPlanIsNotRefused() {
        ClassCastException again = new ClassCastException("and again");
        NodePlanner planner = over(new ClassCastException("once"), again);
        assertSame(again, assertThrows(ClassCastException.class,
                () -> planner.translate("led-by-another", "SELECT 1", null, true, true, false, -1)));
    }

    @Test
    void aRefusalIsNotTriedAgain() {
        NodePlanner planner = over(new StatementExecutionException("there is no table"));
        assertThrows(StatementExecutionException.class, () -> plan(planner, "SELECT 1"));
        assertEquals(0, forgotten.get());
    }

    @ParameterizedTest
    @ValueSource(strings = {"SELECT * FROM t", "SELECT k FROM t", "SELECT * FROM t WHERE n=1", "SELECT COUNT(*) FROM t",
        "SELECT * FROM t ORDER BY n", "SELECT k FROM t a WHERE k=1 UNION ALL SELECT n FROM t"})
    void aQueryThatIsSentAsAChangeOfRowsIsRefusedInWords(String query) throws Exception {
        long open = Node.begin(leader.server(), "herd");
        for (long transaction : new long[] {0, open}) {
            StatementExecutionException refusal =
                    assertThrows(StatementExecutionException.class, () -> Node.execute(leader.server(), transaction, query));
            assertTrue(refusal.getMessage().contains("is sent as a query"), refusal.getMessage());
        }
        CompletableFuture.runAsync(() -> Node.execute(leader.server(), 0, "EXECUTE COMMITTRANSACTION 'herd'," + open)).get(30, TimeUnit.SECONDS);
        Node.execute(leader.server(), 0, "SELECT * FROM t WHERE k=1");
    }

    @ParameterizedTest
    @ValueSource(strings = {"ALTER TABLE forgotten MODIFY n int AUTO_INCREMENT", "ALTER TABLE forgotten ADD COLUMN m int auto_increment",
        "CREATE TABLE none (k int PRIMARY KEY, n int AUTO_INCREMENT)", "CREATE TABLE none (n int AUTO_INCREMENT, m int)",
        "CREATE TABLE none (k int, n int AUTO_INCREMENT, PRIMARY KEY(k))", "ALTER TABLE forgotten ADD COLUMN m int UNIQUE",
        "ALTER TABLE forgotten MODIFY n int unique", "ALTER TABLE forgotten ADD COLUMN p int REFERENCES t(k)",
        "ALTER TABLE forgotten ADD COLUMN p int CHECK (p > 0)"})
    void whatHerdDbWouldForgetOfAColumnIsRefused(String statement) {
        Node.execute(leader.server(), 0, "CREATE TABLE IF NOT EXISTS forgotten (k int PRIMARY KEY AUTO_INCREMENT, n int)");
        StatementExecutionException refusal =
                assertThrows(StatementExecutionException.class, () -> Node.execute(leader.server(), 0, statement));
        assertTrue(refusal.getMessage().contains("HerdDB would forget it"), refusal.getMessage());
    }

    @ParameterizedTest
    @ValueSource(strings = {"CREATE TABLE numbered1 (`k` int AUTO_INCREMENT PRIMARY KEY, n int)",
        "CREATE TABLE numbered2 (n int, `_pk` long AUTO_INCREMENT, PRIMARY KEY (`_pk`))",
        "CREATE TABLE numbered3 (K int auto_increment, n int, PRIMARY KEY (n, k))", "ALTER TABLE t MODIFY k int AUTO_INCREMENT"})
    void aKeyMayBeNumbered(String statement) {
        Node.execute(leader.server(), 0, statement);
    }

    @ParameterizedTest
    @ValueSource(strings = {"SELECT n, COUNT(*) FROM t GROUP BY ROLLUP(n)", "SELECT n, COUNT(*) FROM t GROUP BY cube(n, k)",
        "SELECT n, COUNT(*) FROM t GROUP BY GROUPING SETS ((n), ())", "SELECT CAST(n AS DECIMAL(5,2)) FROM t",
        "SELECT k FROM t WHERE CAST(1.25 AS numeric (5)) > 1", "SELECT COUNT(n) FILTER (WHERE k > 1) FROM t",
        "SELECT k FROM t LIMIT 4294967297", "SELECT k FROM t ORDER BY n LIMIT 1 OFFSET 4294967296"})
    void whatHerdDbWouldTakeForSomethingElseIsRefused(String query) {
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> read(query));
        assertTrue(refusal.getMessage().contains("is not supported: HerdDB would"), refusal.getMessage());
    }

    @ParameterizedTest
    @ValueSource(strings = {"SELECT CAST(n AS FLOAT) FROM t", "SELECT n / CAST(k AS NUMERIC) FROM t", "SELECT k FROM t LIMIT 2147483647",
        "SELECT n AS `cube`, 'ROLLUP' FROM t", "SELECT CAST(1.5 AS DOUBLE) FROM t"})
    void whatOnlyLooksLikeItIsNot(String query) {
        read(query);
    }

    private static void read(String query) {
        leader.server().getManager().getPlanner().translate("herd", query, List.of(), true, true, false, -1);
    }

    @Test
    void aPartOfAKeyIsNotUpdatedAlone() {
        Node.execute(leader.server(), 0, "CREATE TABLE halves (a int, b int, PRIMARY KEY (a, b))");
        Node.execute(leader.server(), 0, "INSERT INTO halves VALUES(1,2)");
        for (String half : List.of("a", "b")) {
            StatementExecutionException refusal = assertThrows(StatementExecutionException.class,
                    () -> Node.execute(leader.server(), 0, "UPDATE halves SET " + half + "=7"));
            assertTrue(refusal.getMessage().contains("Set all of them"), refusal.getMessage());
        }
        Node.execute(leader.server(), 0, "UPDATE halves SET a=7, b=b");
        Node.execute(leader.server(), 0, "DELETE FROM halves WHERE a=7 AND b=2");
    }

    @Test
    void theSchemaIsForgottenNowAndThen() {
        NodePlanner planner = over();
        for (int i = 0; i < 2 * NodePlanner.STATEMENTS_OF_A_SCHEMA; i++) {
            plan(planner, "SELECT 1");
        }
        assertEquals(2, forgotten.get());
    }

    @Test
    void aForgottenSchemaIsMadeAnewWithShortLists() throws Exception {
        NodePlanner planner = (NodePlanner) leader.server().getManager().getPlanner();
        for (int i = 0; i < 100; i++) {
            plan(planner, "SELECT k FROM t WHERE n=" + i);
        }
        assertTrue(functions(planner) >= 100, "HerdDB does not grow the list any more: NodePlanner need not forget it");
        HerdInternals.forgetSchema(planner.planner);
        plan(planner, "SELECT k FROM t WHERE n=-1");
        assertEquals(1, functions(planner));
    }

    @Test
    void aStatementIsPlannedAgainIfATableIsAlteredMeanwhile() {
        DBManager manager = leader.server().getManager();
        AtomicInteger planned = new AtomicInteger();
        NodePlanner[] planner = new NodePlanner[1];
        planner[0] = new NodePlanner(manager, new InterposedPlanner(manager, own -> {
            if (planned.incrementAndGet() == 1) {
                planner[0].alters("herd").run();
            }
            return PLAN;
        }), HerdInternals.syntax(), forgotten::incrementAndGet);
        assertSame(PLAN, plan(planner[0], "SELECT 1"));
        assertEquals(2, planned.get());
    }

    @Test
    void aPlanThatMetAnAlterTableIsNotTakenFromTheCache() {
        DBManager manager = leader.server().getManager();
        List<TranslatedQuery> plans = new ArrayList<>();
        NodePlanner[] planner = new NodePlanner[1];
        planner[0] = new NodePlanner(manager, new InterposedPlanner(manager, own -> {
            boolean first = plans.isEmpty();
            if (first) {
                planner[0].alters("herd").run();
            }
            TranslatedQuery plan = own.get();
            plans.add(plan);
            if (first) {
                plan(planner[0], "SELECT n FROM t WHERE n=7"); // another client's
            }
            return plan;
        }), HerdInternals.syntax(), forgotten::incrementAndGet);
        plan(planner[0], "SELECT n FROM t WHERE n=7");
        assertEquals(3, plans.size());
        assertNotSame(plans.get(0).plan, plans.get(1).plan);
    }

    @Test
    void aStatementThatIsPlannedDuringAnAlterTableIsPlannedAgainAsTheColumnsChange() {
        DBManager manager = leader.server().getManager();
        AtomicInteger planned = new AtomicInteger();
        NodePlanner planner = new NodePlanner(manager, new InterposedPlanner(manager, own -> {
            if (planned.incrementAndGet() == 1) {
                Node.execute(leader.server(), 0, "ALTER TABLE herd.t ADD COLUMN added int");
            }
            return PLAN;
        }), HerdInternals.syntax(), forgotten::incrementAndGet);
        Runnable ended = planner.alters("herd");
        try {
            assertSame(PLAN, plan(planner, "SELECT 1"));
        } finally {
            ended.run();
        }
        assertEquals(2, planned.get());
    }

    @Test
    void aStatementOfAnotherTablespaceIsPlannedAgainIfItsTableIsBeingAltered() {
        DBManager manager = leader.server().getManager();
        Node.execute(leader.server(), 0, "CREATE TABLESPACE 'other','leader:n0','replica:n0','expectedreplicacount:1','wait:30000'");
        Node.execute(leader.server(), 0, "CREATE TABLE other.t (k int primary key, n int)");
        AtomicInteger planned = new AtomicInteger();
        NodePlanner planner = new NodePlanner(manager, new InterposedPlanner(manager, own -> {
            TranslatedQuery plan = own.get();
            if (planned.incrementAndGet() == 1) {
                Node.execute(leader.server(), 0, "ALTER TABLE other.t ADD COLUMN added int");
            }
            return plan;
        }), HerdInternals.syntax(), forgotten::incrementAndGet);
        Runnable ended = planner.alters("other");
        try {
            assertEquals(3, ((ScanStatement) plan(planner, "SELECT * FROM other.t").plan.mainStatement).getSchema().length);
        } finally {
            ended.run();
        }
    }

    /** Its planner throws some errors, and plans after them. */
    private NodePlanner over(RuntimeException... errors) {
        DBManager manager = leader.server().getManager();
        Deque<RuntimeException> left = new ArrayDeque<>(List.of(errors));
        return new NodePlanner(manager, new InterposedPlanner(manager, own -> {
            if (!left.isEmpty()) {
                throw left.pop();
            }
            return PLAN;
        }), HerdInternals.syntax(), forgotten::incrementAndGet);
    }

    private static TranslatedQuery plan(NodePlanner planner, String query) {
        return planner.translate("herd", query, null, true, true, false, -1);
    }

    private static int functions(NodePlanner planner) throws Exception {
        Field schema = CalcitePlanner.class.getDeclaredField("rootSchema");
        schema.setAccessible(true);
        return ((SchemaPlus) schema.get(planner.planner)).getSubSchema("herd").getFunctions("COSINE_SIMILARITY").size();
    }
}
