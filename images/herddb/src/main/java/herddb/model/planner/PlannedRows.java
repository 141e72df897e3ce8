package herddb.model.planner;

import herddb.core.AbstractTableManager;
import herddb.core.TableSpaceManager;
import herddb.model.DataScanner;
import herddb.model.DataScannerException;
import herddb.model.StatementExecutionException;
import herddb.model.Table;
import herddb.model.commands.ScanStatement;
import herddb.utils.DataAccessor;
import java.util.Arrays;
import java.util.function.Supplier;

/**
 * The rows of a table for a query, which ends if the table gets its columns in another order. HerdDB computes each row as it is fetched, and takes
 * a column by its place: behind an ALTER TABLE … DROP COLUMN the other rows would have the values of another column.
 */
public final class PlannedRows extends DataScanner {

    private final DataScanner rows;
    private final Supplier<Table> now;
    private Table known;

    private PlannedRows(DataScanner rows, Table known, Supplier<Table> now) {
        super(rows.getTransaction(), rows.getFieldNames(), rows.getSchema());
        this.rows = rows;
        this.known = known;
        this.now = now;
    }

    /**
     * Reads a table that a query was planned for.
     *
     * @param tablespace what has the table; null where it does not run
     * @param scan       has HerdDB read it
     */
    public static DataScanner of(ScanStatement query, TableSpaceManager tablespace, Supplier<DataScanner> scan) {
        Table planned = query.getTableDef();
        if (planned == null || tablespace == null) {
            return scan.get();
        }
        Supplier<Table> now = () -> {
            AbstractTableManager manager = tablespace.getTableManager(query.getTable());
            return manager == null ? planned : manager.getTable(); // HerdDB says so
        };
        Table known = sameColumns(planned, now.get());
        return new PlannedRows(scan.get(), known, now);
    }

    /** Those that were added come last. */
    private static Table sameColumns(Table before, Table now) {
        if (now != before && !hasFirst(now.columnNames, before.columnNames)) {
            throw new StatementExecutionException("the columns of table " + now.name + " were changed meanwhile: repeat the query");
        }
        return now;
    }

    static boolean hasFirst(String[] columns, String[] first) {
        return columns.length >= first.length && Arrays.equals(columns, 0, first.length, first, 0, first.length);
    }

    @Override
    public boolean hasNext() throws DataScannerException {
        return rows.hasNext();
    }

    /** HerdDB reads one row ahead, and fails at a column that is gone. */
    @Override
    public DataAccessor next() throws DataScannerException {
        DataAccessor row;
        try {
            row = rows.next();
        } catch (RuntimeException error) {
            refuseAltered();
            throw error;
        }
        refuseAltered();
        return row;
    }

    private void refuseAltered() throws DataScannerException {
        try {
            known = sameColumns(known, now.get());
        } catch (StatementExecutionException refusal) {
            close();
            throw refusal;
        }
    }

    @Override
    public boolean isRewindSupported() {
        return rows.isRewindSupported();
    }

    @Override
    public void rewind() throws DataScannerException {
        rows.rewind();
    }

    @Override
    public void close() throws DataScannerException {
        if (!isClosed()) {
            super.close();
            rows.close();
        }
    }
}
