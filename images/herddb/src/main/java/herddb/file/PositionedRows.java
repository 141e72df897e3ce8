package herddb.file;

import herddb.core.MaterializedRecordSet;
import herddb.core.RecordSetFactory;
import herddb.model.Column;
import herddb.model.Projection;
import herddb.model.StatementEvaluationContext;
import herddb.model.Tuple;
import herddb.model.planner.ProjectOp;
import herddb.utils.DataAccessor;
import java.nio.file.Path;

/**
 * The rows of a sort, a join or a group, of which HerdDB writes many to disk. It writes values by the names that a query gives to its columns, but
 * takes them by these names from the rows of the table: {@code SELECT a AS b, b AS a} gets them exchanged, and another name gets NULL. Here the
 * values have their positions.
 */
public final class PositionedRows extends FileRecordSet {

    private PositionedRows(int expected, int most, Column[] columns, String[] names, FileRecordSetFactory factory) {
        super(expected, most, columns, names, factory);
    }

    /** @param most rows that are kept in memory */
    public static RecordSetFactory factory(Path folder, int most) {
        return new FileRecordSetFactory(folder, most) {
            @Override
            public MaterializedRecordSet createRecordSet(String[] names, Column[] columns) {
                return new PositionedRows(-1, most, columns, names, this);
            }

            @Override
            public MaterializedRecordSet createFixedSizeRecordSet(int size, String[] names, Column[] columns) {
                return new PositionedRows(size, most, columns, names, this);
            }
        };
    }

    @Override
    public void add(DataAccessor row) {
        super.add(positioned(row));
    }

    @Override
    public void applyProjection(Projection projection, StatementEvaluationContext context) {
        super.applyProjection(new Projection() {
            @Override
            public Column[] getColumns() {
                return projection.getColumns();
            }

            @Override
            public String[] getFieldNames() {
                return projection.getFieldNames();
            }

            @Override
            public DataAccessor map(DataAccessor row, StatementEvaluationContext of) {
                return positioned(projection.map(row, of));
            }
        }, context);
    }

    private static DataAccessor positioned(DataAccessor row) {
        return row instanceof ProjectOp.ZeroCopyProjection.RuntimeProjectedDataAccessor
                ? new Tuple(row.getFieldNames(), row.getValues()) : row;
    }
}
