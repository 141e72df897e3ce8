package herddb.model.planner;

import herddb.model.Predicate;
import herddb.sql.SQLRecordPredicate;

/** Reads some rows of a table, instead of HerdDB's class of this name ({@link SimpleScanOp}). */
public final class FilteredTableScanOp extends SimpleScanOp {

    FilteredTableScanOp(FilterOp filter, TableScanOp scan) {
        super(scan.getStatement());
        statement.setPredicate(new SQLRecordPredicate(statement.getTableDef(), null, filter.getCondition()));
    }

    public Predicate getPredicate() {
        return statement.getPredicate();
    }

    @Override
    public String toString() {
        return "FilteredTableScanOp{statement=" + statement + '}';
    }
}
