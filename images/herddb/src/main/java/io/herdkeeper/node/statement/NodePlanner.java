package io.herdkeeper.node.statement;

import herddb.core.AbstractTableManager;
import herddb.core.DBManager;
import herddb.core.TableSpaceManager;
import herddb.metadata.MetadataStorageManagerException;
import herddb.model.NotLeaderException;
import herddb.model.Statement;
import herddb.model.StatementExecutionException;
import herddb.model.Table;
import herddb.model.TableSpace;
import herddb.model.commands.AlterTableSpaceStatement;
import herddb.model.commands.AlterTableStatement;
import herddb.model.commands.DropTableSpaceStatement;
import herddb.model.commands.SQLPlannedOperationStatement;
import herddb.model.planner.ChangeOp;
import herddb.sql.AbstractSQLPlanner;
import herddb.sql.TranslatedQuery;
import herddb.utils.SQLUtils;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import java.util.regex.Pattern;
import net.sf.jsqlparser.JSQLParserException;
import net.sf.jsqlparser.parser.CCJSqlParserUtil;
import net.sf.jsqlparser.statement.alter.Alter;
import net.sf.jsqlparser.statement.alter.AlterExpression;
import net.sf.jsqlparser.statement.create.table.ColumnDefinition;
import net.sf.jsqlparser.statement.create.table.CreateTable;
import net.sf.jsqlparser.statement.create.table.ForeignKeyIndex;
import net.sf.jsqlparser.statement.create.table.Index;
import org.apache.calcite.sql.SqlCall;
import org.apache.calcite.sql.SqlKind;
import org.apache.calcite.sql.SqlUpdate;
import org.apache.calcite.sql.parser.SqlParseException;
import org.apache.calcite.sql.parser.SqlParser;
import org.apache.calcite.sql.util.SqlBasicVisitor;

/**
 * HerdDB's planner, without its silent errors: statements that it would plan wrongly are refused, and its failures become answers.
 * Otherwise it would throw, and the connection would end, so a client could not know whether its statement was executed.
 *
 * <p>HerdDB 0.29 adds functions to a list of its schema with each plan (CalcitePlanner.runPlanner). Concurrent plans conflict there, and
 * the list never shrinks. So the schema is reset from time to time, and before a failed statement is planned once more.
 */
final class NodePlanner extends AbstractSQLPlanner {

    private static final Pattern SELECT = Pattern.compile("\\bSELECT\\b", Pattern.CASE_INSENSITIVE);
    private static final Pattern CREATE_TABLE = Pattern.compile("CREATE\\s+TABLE\\b", Pattern.CASE_INSENSITIVE);
    private static final Pattern ALTER_TABLE = Pattern.compile("ALTER\\s+TABLE\\b", Pattern.CASE_INSENSITIVE);
    private static final Pattern AUTO_INCREMENT = Pattern.compile("\\bAUTO_INCREMENT\\b", Pattern.CASE_INSENSITIVE);

    private static final String A_NUMBER = "AUTO_INCREMENT is for the PRIMARY KEY. HerdDB would forget it for another column: leave it out there";

    /** HerdDB reads one row by its key as a change of rows, too. At other queries it fails, or forgets their scanner. */
    private static final String A_QUERY = "a query that does not name one row by its whole key is sent as a query (in JDBC by executeQuery),"
            + " not as a change of rows (executeUpdate)";

    /** If none of them was in the cache of plans, the lists hold about a megabyte. A schema is made in milliseconds. */
    static final int STATEMENTS_OF_A_SCHEMA = 10_000;

    /** One that reads a large table takes longer, and queries need not wait for it. */
    private static final long ALTER_MILLIS = 200;
    /** Whether a thread executes one. */
    private static final ThreadLocal<Boolean> ALTERS = ThreadLocal.withInitial(() -> false);

    final AbstractSQLPlanner planner;
    private final SqlParser.Config syntax;
    private final Runnable forgetSchema;
    private final AtomicLong statements = new AtomicLong();
    /** How many beginnings and ends of ALTER TABLEs there were. */
    private final AtomicLong changes = new AtomicLong();
    /** The tablespaces in which one is under way. */
    private final Set<String> altered = ConcurrentHashMap.newKeySet();
    /** What is being planned, each with the {@link #changes} as it began. */
    private final Map<Object, Long> plannings = new ConcurrentHashMap<>();

    /**
     * Plans by another planner.
     *
     * @param syntax as that planner reads queries and changes of rows
     * @param forgetSchema has it make its schema anew
     */
    NodePlanner(DBManager manager, AbstractSQLPlanner planner, SqlParser.Config syntax, Runnable forgetSchema) {
        super(manager);
        this.planner = planner;
        this.syntax = syntax;
        this.forgetSchema = forgetSchema;
    }

    @Override
    public TranslatedQuery translate(String tablespace, String query, List<Object> parameters, boolean scan, boolean allowCache,
            boolean returnValues, int maxRows) {
        refuseAfterFailure(tablespace);
        String planned = planned(query.substring(Math.max(0, SQLUtils.findQueryStart(query))));
        if (statements.incrementAndGet() % STATEMENTS_OF_A_SCHEMA == 0) {
            forgetSchema.run();
        }
        for (boolean again = false;; again = true) {
            try {
                TranslatedQuery plan = unaltered(tablespace,
                        fresh -> planner.translate(tablespace, planned, parameters, scan, allowCache && !fresh, returnValues, maxRows));
                if (!scan && plan.plan != null && plan.plan.mainStatement instanceof SQLPlannedOperationStatement rows
                        && rows.getRootOp().getOutputSchema().length > 0) {
                    throw new StatementExecutionException(A_QUERY);
                }
                Statement statement = plan.plan == null ? null : plan.plan.mainStatement;
                if (statement != null && !(statement instanceof AlterTableSpaceStatement || statement instanceof DropTableSpaceStatement)) {
                    refuseAfterFailure(statement.getTableSpace()); // a table's name may tell another one
                }
                if (statement instanceof DropTableSpaceStatement && parameters != null && !parameters.isEmpty()) {
                    refuseAnother(statement.getTableSpace(), parameters.get(0).toString());
                }
                if (statement instanceof AlterTableStatement alter) {
                    refuseForgottenNumbers(planned, alter);
                }
                MisreadParts.refuse(planned, syntax);
                RoundedLists.refuse(manager, tablespace, planned, syntax); // now the tablespace has its tables
                return plan;
            } catch (StatementExecutionException refusal) {
                throw !scan && refusal.getMessage() != null && refusal.getMessage().startsWith("unsupported GET not on PK")
                        ? new StatementExecutionException(A_QUERY, refusal) : refusal;
            } catch (StackOverflowError tooDeep) { // the connection would end, with all that others have begun on it
                throw new StatementExecutionException("the statement has too many parts, such as some hundred terms of OR or +: divide it", tooDeep);
            } catch (RuntimeException error) {
                if (again) {
                    TableSpaceManager led = manager.getTableSpaceManager(tablespace);
                    boolean leads = led != null && led.isLeader() && !led.isClosed() && !led.isFailed();
                    // the next leader may plan it
                    throw leads ? new StatementExecutionException(!scan && SELECT.matcher(planned).lookingAt()
                            ? A_QUERY : "HerdDB can't plan this statement: " + error, error) : error;
                }
            }
            forgetSchema.run();
        }
    }

    /**
     * The operator names the tablespace that it drops by its uuid: a node that hangs may get to a DROP only once another one has done it, and
     * somebody has made another tablespace of that name.
     */
    private void refuseAnother(String name, String uuid) {
        TableSpace present;
        try {
            present = manager.getMetadataStorageManager().describeTableSpace(name);
        } catch (MetadataStorageManagerException error) {
            throw new StatementExecutionException(error);
        }
        if (present != null && !present.uuid.equals(uuid)) {
            throw new StatementExecutionException(
                    "tablespace " + name + " has the uuid " + present.uuid + ", not " + uuid + " as the one to drop: it stays");
        }
    }

    /**
     * An ALTER TABLE begins, which runs alone in its tablespace. Its own queries are planned meanwhile.
     *
     * @return what says that it has ended
     */
    Runnable alters(String tablespace) {
        altered.add(tablespace);
        changes.incrementAndGet();
        ALTERS.set(true);
        return () -> {
            ALTERS.remove();
            planner.clearCache();
            changes.incrementAndGet();
            altered.remove(tablespace); // who still finds it plans again
        };
    }

    /**
     * Plans by the columns of one moment. HerdDB looks at a table several times: with an ALTER TABLE in between it takes one column for another,
     * and the plan stays in its cache. Then an INSERT writes values into other columns, and a DELETE deletes other rows.
     *
     * @param ofTheConnection the tablespace to which names of tables belong that name none
     * @param planning        is told whether the cache may have such a plan, until who planned it has seen the ALTER TABLE
     */
    private TranslatedQuery unaltered(String ofTheConnection, Function<Boolean, TranslatedQuery> planning) {
        Object own = new Object();
        String tablespace = ofTheConnection;
        try {
            while (true) {
                for (long waited = 0; tablespace != null && altered.contains(tablespace) && waited < ALTER_MILLIS && !ALTERS.get(); waited++) {
                    LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1)); // a change would wait for it, too
                }
                long before = changes.get();
                plannings.put(own, before);
                List<Table> changing = changing(tablespace);
                TranslatedQuery plan = planning.apply(!changing.isEmpty() || plannings.values().stream().anyMatch(began -> began != before));
                tellTable(plan);
                String named = plan.plan == null || plan.plan.mainStatement == null ? null : plan.plan.mainStatement.getTableSpace();
                if (named != null && !named.equals(tablespace) && altered.contains(named)) {
                    tablespace = named; // the end of that ALTER TABLE clears the cache
                    continue;
                }
                if (changes.get() == before && changing(tablespace).equals(changing)) {
                    return plan;
                }
                planner.clearCache();
            }
        } finally {
            plannings.remove(own);
        }
    }

    /** The tables that an ALTER TABLE may change now. */
    private List<Table> changing(String tablespace) {
        TableSpaceManager present = tablespace == null || !altered.contains(tablespace) ? null : manager.getTableSpaceManager(tablespace);
        return present == null ? List.of() : present.getAllTablesForPlanner();
    }

    private void tellTable(TranslatedQuery plan) {
        Statement statement = plan.plan == null ? null : plan.plan.mainStatement;
        if (statement instanceof SQLPlannedOperationStatement rows && rows.getRootOp() instanceof ChangeOp change) {
            change.plannedFor(manager.getTableSpaceManager(change.getTablespace()));
        }
    }

    /** Another node may have fenced a log that has failed, and lead. This one lacks the rows written there, and stops a moment later. */
    private void refuseAfterFailure(String tablespace) {
        TableSpaceManager led = tablespace == null ? null : manager.getTableSpaceManager(tablespace);
        if (led != null && led.isLeader() && led.isFailed()) {
            throw new NotLeaderException("node " + manager.getNodeId() + " does not lead tablespace " + tablespace + " any more: its log has failed");
        }
    }

    private String planned(String query) {
        if (query.regionMatches(true, 0, "UPDATE", 0, "UPDATE".length()) && SELECT.matcher(query).find()) {
            refuseValuesOfQueries(query);
        } else if (CREATE_TABLE.matcher(query).lookingAt()) {
            return withNames(query);
        } else if (ALTER_TABLE.matcher(query).lookingAt()) {
            refuseWhatIsForgotten(query);
        }
        return query;
    }

    /** HerdDB computes new values from the row alone, and takes the result of a query for one of its columns. */
    private void refuseValuesOfQueries(String query) {
        try {
            if (SqlParser.create(query, syntax).parseStmt() instanceof SqlUpdate update) {
                update.getSourceExpressionList().accept(new SqlBasicVisitor<Void>() {
                    @Override
                    public Void visit(SqlCall call) {
                        if (call.getKind().belongsTo(SqlKind.QUERY)) {
                            throw new StatementExecutionException("UPDATE … SET column = (SELECT …) is not supported: HerdDB would write"
                                    + " another value than the selected one. Select it first, and write it by a second statement");
                        }
                        return super.visit(call);
                    }
                });
            }
        } catch (SqlParseException error) {
            // the planner says so
        }
    }

    /** HerdDB needs a name of each foreign key, and forgets those that a column has for itself, as it does with CHECK. */
    private static String withNames(String query) {
        CreateTable table;
        try {
            if (!(CCJSqlParserUtil.parse(query) instanceof CreateTable parsed)) {
                return query;
            }
            table = parsed;
        } catch (JSQLParserException error) {
            return query; // the planner says so
        }
        for (ColumnDefinition column : table.getColumnDefinitions() == null ? List.<ColumnDefinition>of() : table.getColumnDefinitions()) {
            refuseWhatIsForgotten(column, Set.of("REFERENCES", "CHECK"));
        }
        refuseForgottenNumbers(table);
        boolean changed = false;
        for (Index index : table.getIndexes() == null ? List.<Index>of() : table.getIndexes()) {
            if (index instanceof ForeignKeyIndex key && key.getName() == null) {
                key.setName((table.getTable().getName() + "_fk_" + String.join("_", key.getColumnsNames())).replace("`", ""));
                changed = true;
            }
        }
        return changed ? table.toString() : query;
    }

    private static void refuseWhatIsForgotten(String query) {
        try {
            if (CCJSqlParserUtil.parse(query) instanceof Alter alter && alter.getAlterExpressions() != null) {
                for (AlterExpression part : alter.getAlterExpressions()) {
                    for (ColumnDefinition column : part.getColDataTypeList() == null ? List.<ColumnDefinition>of() : part.getColDataTypeList()) {
                        refuseWhatIsForgotten(column, Set.of("REFERENCES", "CHECK", "UNIQUE"));
                    }
                }
            }
        } catch (JSQLParserException error) {
            // the planner says so
        }
    }

    private static void refuseWhatIsForgotten(ColumnDefinition column, Set<String> forgotten) {
        for (String word : column.getColumnSpecs() == null ? List.<String>of() : column.getColumnSpecs()) {
            String upper = word.toUpperCase(Locale.ROOT);
            if (forgotten.contains(upper)) {
                throw new StatementExecutionException(upper + " behind the column " + column.getColumnName()
                        + " is not supported: HerdDB would forget it" + switch (upper) {
                            case "REFERENCES" -> ". Write CONSTRAINT name FOREIGN KEY (" + column.getColumnName() + ") REFERENCES …";
                            case "UNIQUE" -> ". Use CREATE UNIQUE INDEX";
                            default -> "";
                        });
            }
        }
    }

    /** Of an ALTER TABLE. HerdDB numbers the rows of a table by its key, and forgets that another column is to be numbered. */
    private void refuseForgottenNumbers(String query, AlterTableStatement alter) {
        TableSpaceManager tablespace = manager.getTableSpaceManager(alter.getTableSpace());
        AbstractTableManager altered = tablespace == null ? null : tablespace.getTableManager(alter.getTable());
        if (altered != null && alter.getNewTableName() == null && AUTO_INCREMENT.matcher(query).find()
                && alter.getModifyColumns().stream().noneMatch(column -> altered.getTable().isPrimaryKeyColumn(
                        altered.getTable().getColumnBySerialPosition(column.serialPosition).name))) {
            throw new StatementExecutionException(A_NUMBER);
        }
    }

    private static void refuseForgottenNumbers(CreateTable table) {
        Set<String> key = new HashSet<>();
        for (Index index : table.getIndexes() == null ? List.<Index>of() : table.getIndexes()) {
            if (index.getType().equalsIgnoreCase("PRIMARY KEY")) {
                index.getColumnsNames().forEach(column -> key.add(name(column)));
            }
        }
        for (ColumnDefinition column : table.getColumnDefinitions() == null ? List.<ColumnDefinition>of() : table.getColumnDefinitions()) {
            List<String> words = column.getColumnSpecs() == null ? List.of() : column.getColumnSpecs();
            if (words.stream().anyMatch("AUTO_INCREMENT"::equalsIgnoreCase) && words.stream().noneMatch("PRIMARY"::equalsIgnoreCase)
                    && !key.contains(name(column.getColumnName()))) {
                throw new StatementExecutionException(A_NUMBER);
            }
        }
    }

    private static String name(String quoted) {
        return quoted.replace("`", "").toLowerCase(Locale.ROOT);
    }

    @Override
    public void clearCache() {
        planner.clearCache();
    }

    @Override
    public long getCacheHits() {
        return planner.getCacheHits();
    }

    @Override
    public long getCacheMisses() {
        return planner.getCacheMisses();
    }

    @Override
    public long getCacheSize() {
        return planner.getCacheSize();
    }
}
