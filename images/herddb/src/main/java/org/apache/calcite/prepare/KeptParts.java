package org.apache.calcite.prepare;

import herddb.model.StatementExecutionException;
import java.util.List;
import org.apache.calcite.plan.RelOptPredicateList;
import org.apache.calcite.plan.RelOptUtil;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.RelShuttleImpl;
import org.apache.calcite.rel.logical.LogicalAggregate;
import org.apache.calcite.rel.logical.LogicalFilter;
import org.apache.calcite.rel.logical.LogicalJoin;
import org.apache.calcite.rel.logical.LogicalProject;
import org.apache.calcite.rel.logical.LogicalTableModify;
import org.apache.calcite.rex.RexBuilder;
import org.apache.calcite.rex.RexCall;
import org.apache.calcite.rex.RexDynamicParam;
import org.apache.calcite.rex.RexFieldAccess;
import org.apache.calcite.rex.RexLiteral;
import org.apache.calcite.rex.RexNode;
import org.apache.calcite.rex.RexShuttle;
import org.apache.calcite.rex.RexSimplify;
import org.apache.calcite.rex.RexUtil;
import org.apache.calcite.sql.SqlKind;
import org.apache.calcite.sql.fun.SqlStdOperatorTable;
import org.apache.calcite.sql.type.SqlTypeName;

/**
 * Keeps, or refuses, the parts of a plan that would be lost.
 *
 * <p>HerdDB's conditions are FALSE where SQL's are NULL. So one that is selected, or stored, is marked by Calcite's Reinterpret, for which
 * {@link herddb.sql.expressions.SQLExpressionCompiler} tells the two apart. Calcite joins by = what is to be joined by IS NOT DISTINCT FROM, so
 * that is hidden behind the same mark.
 */
final class KeptParts extends RelShuttleImpl {

    private final RexBuilder builder;
    private final RexSimplify simplification;

    KeptParts(RexBuilder builder) {
        this.builder = builder;
        this.simplification = new RexSimplify(builder, RelOptPredicateList.EMPTY, RexUtil.EXECUTOR);
    }

    @Override
    public RelNode visit(LogicalProject project) {
        LogicalProject kept = (LogicalProject) super.visit(project);
        return kept.copy(kept.getTraitSet(), kept.getInput(), marked(kept.getProjects()), kept.getRowType());
    }

    @Override
    public RelNode visit(LogicalTableModify change) {
        LogicalTableModify kept = (LogicalTableModify) super.visit(change);
        if (kept.getSourceExpressionList() == null) {
            return kept;
        }
        // Calcite takes a column that stands before IN for one of a query around the UPDATE
        List<RexNode> values = new RexShuttle() {
            @Override
            public RexNode visitFieldAccess(RexFieldAccess column) {
                return builder.makeInputRef(column.getType(), column.getField().getIndex());
            }
        }.visitList(marked(kept.getSourceExpressionList()));
        return LogicalTableModify.create(kept.getTable(), kept.getCatalogReader(), kept.getInput(), kept.getOperation(),
                kept.getUpdateColumnList(), values, kept.isFlattened());
    }

    @Override
    public RelNode visit(LogicalFilter filter) {
        LogicalFilter kept = (LogicalFilter) super.visit(filter);
        return kept.copy(kept.getTraitSet(), kept.getInput(), hidden(kept.getCondition()));
    }

    @Override
    public RelNode visit(LogicalJoin join) {
        LogicalJoin kept = (LogicalJoin) super.visit(join);
        return kept.copy(kept.getTraitSet(), hidden(kept.getCondition()), kept.getLeft(), kept.getRight(), kept.getJoinType(),
                kept.isSemiJoinDone());
    }

    @Override
    public RelNode visit(LogicalAggregate aggregate) {
        if (aggregate.getAggCallList().stream().anyMatch(call -> call.filterArg >= 0)) {
            throw new StatementExecutionException("FILTER (WHERE …) is not supported: HerdDB would compute the function of all rows."
                    + " Write function(CASE WHEN … THEN column END)");
        }
        return super.visit(aggregate);
    }

    private List<RexNode> marked(List<RexNode> values) {
        return values.stream().map(value -> value instanceof RexCall && value.getType().getSqlTypeName() == SqlTypeName.BOOLEAN
                && value.getType().isNullable() ? mark(value) : value).toList();
    }

    private RexNode hidden(RexNode condition) {
        List<RexNode> parts = RelOptUtil.conjunctions(condition);
        List<RexNode> kept = parts.stream().map(part -> joinsNulls(part) ? mark(part) : part).toList();
        return kept.equals(parts) ? condition : RexUtil.composeConjunction(builder, kept);
    }

    /** Whether Calcite, which simplifies conditions, could take a part of it for a condition of a join. */
    private boolean joinsNulls(RexNode condition) {
        RexNode simple = RexUtil.pullFactors(builder, simplification.simplifyUnknownAsFalse(condition));
        return RelOptUtil.conjunctions(simple).stream().anyMatch(part -> part instanceof RexCall call && isNotDistinct(call));
    }

    private boolean isNotDistinct(RexCall condition) {
        RexCall call = RelOptUtil.collapseExpandedIsNotDistinctFromExpr(condition, builder);
        return call.getKind() == SqlKind.IS_NOT_DISTINCT_FROM
                && call.getOperands().stream().noneMatch(value -> value instanceof RexLiteral || value instanceof RexDynamicParam);
    }

    private RexNode mark(RexNode value) {
        return builder.makeCall(value.getType(), SqlStdOperatorTable.REINTERPRET, List.of(value));
    }
}
