package herddb.model.planner;

import herddb.model.Column;
import herddb.model.DataScanner;
import herddb.model.StatementEvaluationContext;
import herddb.sql.CalciteEnumUtils;
import herddb.sql.expressions.CompiledSQLExpression;
import herddb.utils.DataAccessor;
import java.util.List;
import org.apache.calcite.linq4j.Enumerable;
import org.apache.calcite.linq4j.EnumerableDefaults;
import org.apache.calcite.linq4j.function.Function2;
import org.apache.calcite.rel.core.JoinRelType;

/**
 * A join that asks its condition of each two rows, instead of HerdDB's class of this name, which can't do so for RIGHT and FULL joins.
 */
public final class NestedLoopJoinOp extends JoiningOp {

    private final CompiledSQLExpression condition;
    private final JoinRelType type;

    /** As HerdDB's planner makes it. */
    public NestedLoopJoinOp(String[] fields, Column[] columns, PlannerOp left, PlannerOp right, CompiledSQLExpression condition, JoinRelType type,
            boolean unused) {
        super(fields, columns, left, right);
        this.condition = condition;
        this.type = type;
    }

    @Override
    boolean rereadsLeft() {
        return false;
    }

    @Override
    Enumerable<DataAccessor> join(DataScanner leftRows, DataScanner rightRows, StatementEvaluationContext context) {
        Function2<DataAccessor, DataAccessor, DataAccessor> both = both(leftRows, rightRows);
        return EnumerableDefaults.nestedLoopJoin(leftRows.createNonRewindableEnumerable(), rightRows.createRewindOnCloseEnumerable(),
                meeting(List.of(condition), both, context), both, CalciteEnumUtils.toLinq4jJoinType(type));
    }

    @Override
    public String toString() {
        return "NestedLoopJoinOp{type=" + type + ", condition=" + condition + "\nleft=" + left + "\nright=" + right + '}';
    }
}
