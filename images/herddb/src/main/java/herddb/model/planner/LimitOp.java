package herddb.model.planner;

import herddb.core.MaterializedRecordSet;
import herddb.core.SimpleDataScanner;
import herddb.core.TableSpaceManager;
import herddb.model.Column;
import herddb.model.DataScannerException;
import herddb.model.LimitedDataScanner;
import herddb.model.ScanLimits;
import herddb.model.ScanResult;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.StatementExecutionResult;
import herddb.model.TransactionContext;
import herddb.model.commands.ScanStatement;
import herddb.sql.expressions.CompiledSQLExpression;
import herddb.sql.expressions.ConstantExpression;
import herddb.utils.DataAccessor;
import java.util.Arrays;

/** LIMIT and OFFSET, instead of HerdDB's class of this name, which takes a parameter 0 for no limit. */
public final class LimitOp extends OpWithInput implements ScanLimits {

    private final CompiledSQLExpression maxRows;
    private final CompiledSQLExpression offset;
    /** Whether the input obeys, but for a limit of 0. */
    private final boolean pushed;

    public LimitOp(PlannerOp input, CompiledSQLExpression maxRows, CompiledSQLExpression offset) {
        this(input.optimize(), maxRows, offset, false);
    }

    private LimitOp(PlannerOp input, CompiledSQLExpression maxRows, CompiledSQLExpression offset, boolean pushed) {
        super(input);
        this.maxRows = maxRows;
        this.offset = offset;
        this.pushed = pushed;
    }

    @Override
    public PlannerOp optimize() {
        if (!(input instanceof SortedBindableTableScanOp) && !(input instanceof BindableTableScanOp)) {
            return this;
        }
        ScanStatement scan = ((SimpleScanOp) input).getStatement();
        scan.setLimits(this);
        PlannerOp limited = input instanceof BindableTableScanOp
                ? new LimitedBindableTableScanOp(scan) : new LimitedSortedBindableTableScanOp(scan);
        boolean isKnown = maxRows instanceof ConstantExpression constant && !constant.getValue().equals(0L);
        return isKnown ? limited : new LimitOp(limited, maxRows, offset, true);
    }

    @Override
    public StatementExecutionResult execute(TableSpaceManager tablespace, TransactionContext transaction,
            StatementEvaluationContext context, boolean lockRequired, boolean forWrite) throws StatementExecutionException {
        int most = computeMaxRows(context);
        ScanResult rows = (ScanResult) input.execute(tablespace, transaction, context, lockRequired, forWrite);
        try {
            if (most == 0) {
                rows.dataScanner.close();
                return new ScanResult(rows.transactionId, new SimpleDataScanner(rows.dataScanner.getTransaction(), nothing(tablespace)));
            }
            return pushed ? rows : new ScanResult(rows.transactionId,
                    new LimitedDataScanner(rows.dataScanner, most, computeOffset(context), context));
        } catch (DataScannerException error) {
            throw new StatementExecutionException(error);
        }
    }

    private MaterializedRecordSet nothing(TableSpaceManager tablespace) {
        Column[] columns = getOutputSchema();
        String[] fields = Arrays.stream(columns).map(column -> column.name).toArray(String[]::new);
        MaterializedRecordSet nothing = tablespace.getDbmanager().getRecordSetFactory().createFixedSizeRecordSet(0, fields, columns);
        nothing.writeFinished();
        return nothing;
    }

    @Override
    public int computeMaxRows(StatementEvaluationContext context) throws StatementExecutionException {
        return maxRows == null ? -1 : ((Number) maxRows.evaluate(DataAccessor.NULL, context)).intValue();
    }

    @Override
    public int computeOffset(StatementEvaluationContext context) throws StatementExecutionException {
        return offset == null ? 0 : ((Number) offset.evaluate(DataAccessor.NULL, context)).intValue();
    }

    @Override
    public String toString() {
        return toStringForScan() + "\ninput=" + input;
    }

    @Override
    public String toStringForScan() {
        return "LimitOp{maxRows=" + maxRows + ", offset=" + offset + '}';
    }
}
