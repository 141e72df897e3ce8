package herddb.model.planner;

import herddb.model.Column;
import herddb.utils.Wrapper;

/** An operator on the rows of one other operator. */
abstract class OpWithInput implements PlannerOp {

    final PlannerOp input;

    OpWithInput(PlannerOp input) {
        this.input = input;
    }

    @Override
    public final String getTablespace() {
        return input.getTablespace();
    }

    @Override
    public Column[] getOutputSchema() {
        return input.getOutputSchema();
    }

    @Override
    public final <T> T unwrap(Class<T> type) {
        T unwrapped = input.unwrap(type);
        return unwrapped != null ? unwrapped : Wrapper.unwrap(this, type);
    }
}
