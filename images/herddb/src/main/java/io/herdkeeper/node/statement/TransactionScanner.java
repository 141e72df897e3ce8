package io.herdkeeper.node.statement;

import herddb.model.DataScanner;
import herddb.model.DataScannerException;
import herddb.model.StatementExecutionException;
import herddb.model.Tuple;
import herddb.utils.DataAccessor;

/**
 * The rows of a query in a transaction. The scanner is closed if one of them can't be computed.
 *
 * <p>Otherwise HerdDB forgets the scanner, the transaction counts it as open, and COMMIT and ROLLBACK wait for it forever.
 */
final class TransactionScanner extends DataScanner {

    private final DataScanner rows;

    TransactionScanner(DataScanner rows) {
        super(rows.getTransaction(), rows.getFieldNames(), rows.getSchema());
        this.rows = rows;
    }

    @Override
    public boolean hasNext() throws DataScannerException {
        try {
            return rows.hasNext();
        } catch (DataScannerException | RuntimeException error) {
            throw givenUp(error);
        }
    }

    /** With all values: some are computed when they are read. */
    @Override
    public DataAccessor next() throws DataScannerException {
        try {
            return new Tuple(getFieldNames(), rows.next().getValues());
        } catch (DataScannerException | RuntimeException error) {
            throw givenUp(error);
        }
    }

    private StatementExecutionException givenUp(Exception error) throws DataScannerException {
        close();
        return error instanceof StatementExecutionException refusal ? refusal : new StatementExecutionException(error);
    }

    @Override
    public void close() throws DataScannerException {
        if (!isClosed()) {
            super.close();
            rows.close();
        }
    }
}
