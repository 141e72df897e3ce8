package herddb.model.planner;

import herddb.core.MaterializedRecordSet;
import herddb.core.SimpleDataScanner;
import herddb.core.TableSpaceManager;
import herddb.index.IndexOperation;
import herddb.index.PrimaryIndexRangeScan;
import herddb.model.DataScanner;
import herddb.model.DataScannerException;
import herddb.model.Predicate;
import herddb.model.Projection;
import herddb.model.ScanResult;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.StatementExecutionResult;
import herddb.model.Table;
import herddb.model.TransactionContext;
import herddb.model.TupleComparator;
import herddb.model.commands.ScanStatement;
import herddb.sql.expressions.Values;
import herddb.utils.DataAccessor;
import java.io.Serializable;
import java.util.List;
import java.util.stream.IntStream;

/**
 * ORDER BY, instead of HerdDB's class of this name.
 *
 * <p>HerdDB compares the first column only. If a scan sorts, HerdDB compares whole rows of the table, and confuses positions in the result
 * with positions in the table.
 */
public final class SortOp extends OpWithInput {

    private final Order order;

    /** Sorts by some fields of the input's rows; of each, whether it ascends, and whether NULL comes last. */
    public SortOp(PlannerOp input, boolean[] ascending, int[] fields, boolean[] nullsLast) {
        super(input.optimize());
        List<Key> keys = IntStream.range(0, fields.length).mapToObj(i -> new Key(fields[i], ascending[i], nullsLast[i])).toList();
        this.order = new Order(keys, keys, false);
    }

    /** How the rows of a result come, where it is sorted and nothing follows that; else null. */
    static TupleComparator order(PlannerOp op) {
        if (op instanceof SortOp sort) {
            return sort.order;
        }
        return op instanceof SimpleScanOp scan && scan.getStatement().getLimits() == null
                && scan.getStatement().getComparator() instanceof Order pushed ? new Order(pushed.asked, pushed.asked, false) : null;
    }

    /** A scan may sort by itself, where each field is a column of its table. */
    @Override
    public PlannerOp optimize() {
        if (!(input instanceof BindableTableScanOp) && !(input instanceof TableScanOp)) {
            return this;
        }
        ScanStatement scan = ((SimpleScanOp) input).getStatement();
        List<Key> columns = columns(scan.getProjection());
        if (columns == null) {
            return this;
        }
        scan.setComparator(new Order(columns, order.asked, isTheKeys(columns, scan)));
        return input instanceof TableScanOp ? new SortedTableScanOp(scan) : new SortedBindableTableScanOp(scan);
    }

    /** By their positions in the table; null where a field is computed. */
    private List<Key> columns(Projection projection) {
        if (projection == null || projection instanceof ProjectOp.IdentityProjection) {
            return order.asked;
        }
        return projection instanceof ProjectOp.ZeroCopyProjection chosen
                ? order.asked.stream().map(key -> new Key(chosen.mapPosition(key.field), key.ascending, key.nullsLast)).toList() : null;
    }

    /** Whether rows that are read by the primary key come in this order. */
    private static boolean isTheKeys(List<Key> columns, ScanStatement scan) {
        Table table = scan.getTableDef();
        Predicate predicate = scan.getPredicate();
        IndexOperation index = predicate == null ? null : predicate.getIndexOperation();
        return columns.size() == 1 && columns.get(0).ascending && table.primaryKey.length == 1
                && table.columns[columns.get(0).field].name.equals(table.primaryKey[0])
                && (index == null || index instanceof PrimaryIndexRangeScan);
    }

    @Override
    public StatementExecutionResult execute(TableSpaceManager tablespace, TransactionContext transaction,
            StatementEvaluationContext context, boolean lockRequired, boolean forWrite) throws StatementExecutionException {
        ScanResult unsorted = (ScanResult) input.execute(tablespace, transaction, context, lockRequired, forWrite);
        try (DataScanner rows = unsorted.dataScanner) {
            MaterializedRecordSet sorted = tablespace.getDbmanager().getRecordSetFactory()
                    .createRecordSet(rows.getFieldNames(), rows.getSchema());
            rows.forEach(sorted::add);
            sorted.writeFinished();
            sorted.sort(order);
            return new ScanResult(unsorted.transactionId, new SimpleDataScanner(rows.getTransaction(), sorted));
        } catch (DataScannerException error) {
            throw new StatementExecutionException(error);
        }
    }

    @Override
    public String toString() {
        return "SortOp{" + order + "\ninput=" + input + '}';
    }

    private record Key(int field, boolean ascending, boolean nullsLast) implements Serializable {

        int compare(Object one, Object other) {
            if (one == null || other == null) {
                return one == other ? 0 : (one == null) == nullsLast ? 1 : -1;
            }
            int compared = Values.compare(one, other);
            return ascending ? compared : -compared;
        }
    }

    /**
     * By several fields, each behind the one before.
     *
     * @param keys as the compared rows have them
     * @param asked as the rows of the result have them
     */
    private record Order(List<Key> keys, List<Key> asked, boolean isOnlyPrimaryKeyAndAscending) implements TupleComparator {

        @Override
        public int compare(DataAccessor one, DataAccessor other) {
            for (Key key : keys) {
                int compared = key.compare(one.get(key.field), other.get(key.field));
                if (compared != 0) {
                    return compared;
                }
            }
            return 0;
        }
    }
}
