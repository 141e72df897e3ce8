package herddb.sql.expressions;

import herddb.model.StatementExecutionException;

/** A number that the type of its column can't hold. */
public final class UnfitNumberException extends StatementExecutionException {

    private static final long serialVersionUID = 1L;

    UnfitNumberException(String message) {
        super(message);
    }
}
