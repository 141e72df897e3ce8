package herddb.sql.expressions;

import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.utils.DataAccessor;
import herddb.utils.SQLRecordPredicateFunctions;
import java.util.List;

/** A condition that is NULL where SQL has it. HerdDB's are FALSE there, which costs a WHERE no look at the columns of each other row. */
abstract class NullableCondition implements CompiledSQLExpression {

    private final List<CompiledSQLExpression> operands;

    private NullableCondition(List<CompiledSQLExpression> operands) {
        this.operands = operands;
    }

    /** A comparison, which is NULL where an operand is. */
    static CompiledSQLExpression of(CompiledSQLExpression comparison, List<CompiledSQLExpression> operands) {
        return new NullableCondition(operands) {
            @Override
            public Object evaluate(DataAccessor row, StatementEvaluationContext context) throws StatementExecutionException {
                Object value = comparison.evaluate(row, context);
                return SQLRecordPredicateFunctions.toBoolean(value)
                        || operands.stream().allMatch(operand -> operand.evaluate(row, context) != null) ? value : null;
            }
        };
    }

    /** By OR, if one operand that is TRUE decides, else by AND. */
    static CompiledSQLExpression joined(List<CompiledSQLExpression> operands, boolean decisive) {
        return new NullableCondition(operands) {
            @Override
            public Object evaluate(DataAccessor row, StatementEvaluationContext context) throws StatementExecutionException {
                Object value = !decisive;
                for (CompiledSQLExpression operand : operands) {
                    Object own = operand.evaluate(row, context);
                    if (own == null) {
                        value = null;
                    } else if (SQLRecordPredicateFunctions.toBoolean(own) == decisive) {
                        return decisive;
                    }
                }
                return value;
            }
        };
    }

    @Override
    public void validate(StatementEvaluationContext context) throws StatementExecutionException {
        operands.forEach(operand -> operand.validate(context));
    }
}
