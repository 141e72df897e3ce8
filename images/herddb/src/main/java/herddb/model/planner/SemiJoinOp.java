package herddb.model.planner;

import herddb.model.Column;
import herddb.model.DataScanner;
import herddb.model.StatementEvaluationContext;
import herddb.utils.DataAccessor;
import java.util.Arrays;
import org.apache.calcite.linq4j.Enumerable;
import org.apache.calcite.linq4j.EnumerableDefaults;

/** The rows for which another table has some with equal keys, instead of HerdDB's class of this name. */
public final class SemiJoinOp extends JoiningOp {

    private final int[] leftKeys;
    private final int[] rightKeys;

    /** As HerdDB's planner makes it. */
    public SemiJoinOp(String[] fields, Column[] columns, int[] leftKeys, PlannerOp left, int[] rightKeys, PlannerOp right) {
        super(fields, columns, left, right);
        this.leftKeys = leftKeys;
        this.rightKeys = rightKeys;
    }

    @Override
    Enumerable<DataAccessor> join(DataScanner leftRows, DataScanner rightRows, StatementEvaluationContext context) {
        return EnumerableDefaults.semiJoin(leftRows.createRewindOnCloseEnumerable(), rightRows.createRewindOnCloseEnumerable(),
                JoinKey.keyExtractor(leftKeys), JoinKey.keyExtractor(rightKeys));
    }

    @Override
    public String toString() {
        return "SemiJoinOp{leftKeys=" + Arrays.toString(leftKeys) + ", rightKeys=" + Arrays.toString(rightKeys) + "\nleft=" + left + "\nright="
                + right + '}';
    }
}
