package io.herdkeeper.node.testing;

import herddb.model.DataScanner;
import herddb.model.DataScannerException;
import herddb.model.ScanResult;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionResult;
import herddb.model.TransactionContext;
import herddb.model.TransactionResult;
import herddb.model.commands.BeginTransactionStatement;
import herddb.server.Server;
import herddb.server.ServerConfiguration;
import herddb.sql.TranslatedQuery;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** SQL on a server in this process, as its network peer would run it. */
public final class Node {

    private Node() {
    }

    /** What the operator renders, with sizes for one bookie. */
    public static ServerConfiguration configuration(String id, String root, Path folder) throws Exception {
        return new ServerConfiguration()
                .set(ServerConfiguration.PROPERTY_MODE, ServerConfiguration.PROPERTY_MODE_CLUSTER)
                .set(ServerConfiguration.PROPERTY_NODEID, id)
                .set(ServerConfiguration.PROPERTY_HOST, "127.0.0.1")
                .set(ServerConfiguration.PROPERTY_PORT, BookKeeperForTests.freePort())
                .set(ServerConfiguration.PROPERTY_ZOOKEEPER_ADDRESS, BookKeeperForTests.running().zooKeeperAddress())
                .set(ServerConfiguration.PROPERTY_ZOOKEEPER_PATH, root)
                .set(ServerConfiguration.PROPERTY_BOOKKEEPER_LEDGERS_PATH, BookKeeperForTests.LEDGERS_PATH)
                .set(ServerConfiguration.PROPERTY_BOOKKEEPER_START, false)
                .set(ServerConfiguration.PROPERTY_BOOKKEEPER_MAX_IDLE_TIME, 200)
                .set(ServerConfiguration.PROPERTY_BASEDIR, folder)
                .set(ServerConfiguration.PROPERTY_JMX_ENABLE, false);
    }

    /** Executes a statement and gives its result; what HerdDB refuses is thrown. */
    public static StatementExecutionResult execute(Server server, long transaction, String sql, Object... values) {
        return executeIn("herd", server, transaction, sql, values);
    }

    /** The same on a node without the tablespace herd: the planner waits for a connection's own tablespace. */
    public static StatementExecutionResult executeIn(
            String tablespace, Server server, long transaction, String sql, Object... values) {
        List<Object> parameters = Arrays.asList(values);
        TranslatedQuery query =
                server.getManager().getPlanner().translate(tablespace, sql, parameters, false, true, false, -1);
        return server.getManager().executePlan(query.plan, query.context, new TransactionContext(transaction));
    }

    /** The rows of a query of the tablespace herd, each with its values in the order of their columns. */
    public static List<List<Object>> read(Server server, String sql, Object... values) throws DataScannerException {
        TranslatedQuery query = server.getManager().getPlanner().translate("herd", sql, Arrays.asList(values), true, true, false, -1);
        List<List<Object>> found = new ArrayList<>();
        try (DataScanner rows = ((ScanResult) server.getManager().executePlan(
                query.plan, query.context, TransactionContext.NO_TRANSACTION)).dataScanner) {
            while (rows.hasNext()) {
                found.add(Arrays.asList(rows.next().getValues()));
            }
        }
        return found;
    }

    /** Begins a transaction and gives its id. */
    public static long begin(Server server, String tablespace) {
        TransactionResult result = (TransactionResult) server.getManager().executeStatement(
                new BeginTransactionStatement(tablespace),
                StatementEvaluationContext.DEFAULT_EVALUATION_CONTEXT(), TransactionContext.NO_TRANSACTION);
        return result.getTransactionId();
    }
}
