package herddb.model.planner;

/** Reads a table and computes columns of its rows, instead of HerdDB's class of this name ({@link SimpleScanOp}). */
public final class ProjectedTableScanOp extends SimpleScanOp {

    ProjectedTableScanOp(ProjectOp projection, TableScanOp scan) {
        super(scan.getStatement());
        statement.setProjection(projection.getProjection());
    }

    @Override
    public String toString() {
        return "ProjectedTableScanOp{statement=" + statement + '}';
    }
}
