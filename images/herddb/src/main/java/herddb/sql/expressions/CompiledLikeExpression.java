package herddb.sql.expressions;

import herddb.model.ColumnTypes;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.utils.DataAccessor;
import herddb.utils.SQLRecordPredicateFunctions;
import java.util.regex.Pattern;

/**
 * LIKE, instead of HerdDB's class of this name. For that one NULL is not like anything, so NOT LIKE is true of it. It also ignores ESCAPE
 * where the pattern is a parameter, or the column is a key.
 */
public final class CompiledLikeExpression extends CompiledBinarySQLExpression {

    private final char escape;
    /** Null where the pattern is no constant. */
    private final Pattern pattern;

    public CompiledLikeExpression(CompiledSQLExpression left, CompiledSQLExpression right) {
        this(left, right, '\\');
    }

    public CompiledLikeExpression(CompiledSQLExpression left, CompiledSQLExpression right, CompiledSQLExpression escape) {
        this(left, right, escape.cast(ColumnTypes.STRING).evaluate(DataAccessor.NULL, null).toString().charAt(0));
    }

    private CompiledLikeExpression(CompiledSQLExpression left, CompiledSQLExpression right, char escape) {
        super(left, right);
        this.escape = escape;
        this.pattern = right instanceof ConstantExpression constant && !constant.isNull()
                ? SQLRecordPredicateFunctions.compileLikePattern(constant.getValue().toString(), escape) : null;
    }

    @Override
    public Object evaluate(DataAccessor row, StatementEvaluationContext context) throws StatementExecutionException {
        Object text = left.evaluate(row, context);
        Object like = right.evaluate(row, context);
        if (text == null || like == null) {
            return null;
        }
        return pattern != null ? SQLRecordPredicateFunctions.matches(text, pattern) : SQLRecordPredicateFunctions.like(text, like, escape);
    }

    @Override
    public CompiledSQLExpression remapPositionalAccessToToPrimaryKeyAccessor(int[] projection) {
        return new CompiledLikeExpression(left.remapPositionalAccessToToPrimaryKeyAccessor(projection),
                right.remapPositionalAccessToToPrimaryKeyAccessor(projection), escape);
    }
}
