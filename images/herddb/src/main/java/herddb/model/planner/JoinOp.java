package herddb.model.planner;

import herddb.model.Column;
import herddb.model.DataScanner;
import herddb.model.StatementEvaluationContext;
import herddb.sql.expressions.CompiledSQLExpression;
import herddb.utils.DataAccessor;
import java.util.Arrays;
import java.util.List;
import org.apache.calcite.linq4j.Enumerable;
import org.apache.calcite.linq4j.EnumerableDefaults;
import org.apache.calcite.linq4j.function.Function2;

/** A join by keys that are equal, instead of HerdDB's class of this name. */
public final class JoinOp extends JoiningOp {

    private final int[] leftKeys;
    private final int[] rightKeys;
    private final boolean generateNullsOnLeft;
    private final boolean generateNullsOnRight;
    private final boolean mergeJoin;
    private final List<CompiledSQLExpression> conditions;

    /**
     * As HerdDB's planner makes it.
     *
     * @param mergeJoin  whether both come in the order of the keys
     * @param conditions others that two rows must meet; null or empty for none
     */
    public JoinOp(String[] fields, Column[] columns, int[] leftKeys, PlannerOp left, int[] rightKeys, PlannerOp right, boolean generateNullsOnLeft,
            boolean generateNullsOnRight, boolean mergeJoin, List<CompiledSQLExpression> conditions) {
        super(fields, columns, left, right);
        this.leftKeys = leftKeys;
        this.rightKeys = rightKeys;
        this.generateNullsOnLeft = generateNullsOnLeft;
        this.generateNullsOnRight = generateNullsOnRight;
        this.mergeJoin = mergeJoin;
        this.conditions = conditions == null ? List.of() : conditions;
        if (mergeJoin && !this.conditions.isEmpty()) {
            throw new IllegalStateException("a merge join has no other conditions than its keys: " + conditions);
        }
    }

    @Override
    boolean rereadsLeft() {
        return !mergeJoin;
    }

    @Override
    boolean rereadsRight() {
        return !mergeJoin;
    }

    @Override
    Enumerable<DataAccessor> join(DataScanner leftRows, DataScanner rightRows, StatementEvaluationContext context) {
        Function2<DataAccessor, DataAccessor, DataAccessor> both = both(leftRows, rightRows);
        if (mergeJoin) {
            return EnumerableDefaults.mergeJoin(leftRows.createNonRewindableEnumerable(), rightRows.createNonRewindableEnumerable(),
                    JoinKey.keyExtractor(leftKeys), JoinKey.keyExtractor(rightKeys), both, generateNullsOnLeft, generateNullsOnRight);
        }
        return EnumerableDefaults.hashJoin(leftRows.createRewindOnCloseEnumerable(), rightRows.createRewindOnCloseEnumerable(),
                JoinKey.keyExtractor(leftKeys), JoinKey.keyExtractor(rightKeys), both, null, generateNullsOnLeft, generateNullsOnRight,
                conditions.isEmpty() ? null : meeting(conditions, both, context));
    }

    @Override
    public String toString() {
        return "JoinOp{generateNullsOnLeft=" + generateNullsOnLeft + ", generateNullsOnRight=" + generateNullsOnRight + ", mergeJoin=" + mergeJoin
                + ", leftKeys=" + Arrays.toString(leftKeys) + ", rightKeys=" + Arrays.toString(rightKeys) + ", conditions=" + conditions
                + "\nleft=" + left + "\nright=" + right + '}';
    }
}
