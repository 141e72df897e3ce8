package herddb.model.planner;

import herddb.core.MaterializedRecordSet;
import herddb.core.SimpleDataScanner;
import herddb.core.TableSpaceManager;
import herddb.model.Column;
import herddb.model.DataScanner;
import herddb.model.DataScannerException;
import herddb.model.ScanResult;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.StatementExecutionResult;
import herddb.model.Transaction;
import herddb.model.TransactionContext;
import herddb.model.Tuple;
import herddb.model.TupleComparator;
import java.util.List;

/**
 * UNION ALL, instead of HerdDB's class of this name.
 *
 * <p>For a sorted union, Calcite sorts the parts and expects a merge; HerdDB concatenates them.
 */
public final class UnionAllOp implements PlannerOp {

    private final List<PlannerOp> parts;
    /** Null where the parts are not sorted, or not alike. */
    private final TupleComparator order;

    public UnionAllOp(List<PlannerOp> parts) {
        this.parts = parts;
        TupleComparator first = SortOp.order(parts.get(0));
        this.order = parts.stream().allMatch(part -> SortOp.order(part) != null && SortOp.order(part).equals(first)) ? first : null;
    }

    @Override
    public StatementExecutionResult execute(TableSpaceManager tablespace, TransactionContext transaction,
            StatementEvaluationContext context, boolean lockRequired, boolean forWrite) throws StatementExecutionException {
        MaterializedRecordSet all = null;
        String[] fields = null;
        TransactionContext current = transaction;
        Transaction open = null;
        for (PlannerOp part : parts) {
            ScanResult scanned = (ScanResult) part.execute(tablespace, current, context, lockRequired, forWrite);
            current = new TransactionContext(scanned.transactionId);
            try (DataScanner rows = scanned.dataScanner) {
                if (all == null) {
                    fields = rows.getFieldNames();
                    all = tablespace.getDbmanager().getRecordSetFactory().createRecordSet(fields, rows.getSchema());
                }
                while (rows.hasNext()) {
                    all.add(new Tuple(fields, rows.next().getValues()));
                }
                open = rows.getTransaction();
            } catch (DataScannerException error) {
                throw new StatementExecutionException(error);
            }
        }
        all.writeFinished();
        all.sort(order);
        return new ScanResult(current.transactionId, new SimpleDataScanner(open, all));
    }

    @Override
    public String getTablespace() {
        return parts.get(0).getTablespace();
    }

    @Override
    public Column[] getOutputSchema() {
        return parts.get(0).getOutputSchema();
    }

    @Override
    public String toString() {
        return "UnionAllOp{order=" + order + ", parts=" + parts + '}';
    }
}
