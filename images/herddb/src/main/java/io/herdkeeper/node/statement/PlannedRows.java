package io.herdkeeper.node.statement;

import herddb.model.DataScanner;
import herddb.model.DataScannerException;
import herddb.model.StatementExecutionException;
import herddb.model.Table;
import herddb.utils.DataAccessor;
import java.util.Arrays;
import java.util.function.Supplier;

/**
 * The rows of a query, which ends if its table gets its columns in another order. HerdDB computes each row as it is fetched, and takes a column by
 * its place: behind an ALTER TABLE … DROP COLUMN the other rows would have the values of another column.
 */
final class PlannedRows extends DataScanner {

    private final DataScanner rows;
    private final Supplier<Table> now;
    private Table known;

    /**
     * @param planned the table as the query was planned
     * @param now     the table as it is; null when it is gone
     */
    PlannedRows(DataScanner rows, Table planned, Supplier<Table> now) {
        super(rows.getTransaction(), rows.getFieldNames(), rows.getSchema());
        this.rows = rows;
        this.known = planned;
        this.now = now;
    }

    @Override
    public boolean hasNext() throws DataScannerException {
        return rows.hasNext();
    }

    @Override
    public DataAccessor next() throws DataScannerException {
        DataAccessor row = rows.next();
        Table table = now.get();
        if (table != null && table != known) {
            int columns = known.columnNames.length;
            if (table.columnNames.length < columns || !Arrays.equals(Arrays.copyOf(table.columnNames, columns), known.columnNames)) {
                close();
                throw new StatementExecutionException("the columns of table " + table.name + " were changed meanwhile: repeat the query");
            }
            known = table;
        }
        return row;
    }

    @Override
    public void close() throws DataScannerException {
        if (!isClosed()) {
            super.close();
            rows.close();
        }
    }
}
