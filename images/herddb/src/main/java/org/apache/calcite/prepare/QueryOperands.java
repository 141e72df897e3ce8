package org.apache.calcite.prepare;

import herddb.model.StatementExecutionException;
import java.math.BigDecimal;
import java.util.HashSet;
import java.util.Set;
import org.apache.calcite.plan.RelOptUtil;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.RelVisitor;
import org.apache.calcite.rel.core.CorrelationId;
import org.apache.calcite.rel.core.Filter;
import org.apache.calcite.rex.RexNode;
import org.apache.calcite.rex.RexShuttle;
import org.apache.calcite.rex.RexSubQuery;
import org.apache.calcite.sql.SqlBasicCall;
import org.apache.calcite.sql.SqlCall;
import org.apache.calcite.sql.SqlDelete;
import org.apache.calcite.sql.SqlKind;
import org.apache.calcite.sql.SqlNode;
import org.apache.calcite.sql.SqlNodeList;
import org.apache.calcite.sql.SqlNumericLiteral;
import org.apache.calcite.sql.SqlOrderBy;
import org.apache.calcite.sql.SqlSelect;
import org.apache.calcite.sql.SqlUpdate;
import org.apache.calcite.sql.fun.SqlStdOperatorTable;
import org.apache.calcite.sql.util.SqlBasicVisitor;
import org.apache.calcite.sql2rel.SqlToRelConverter;

/**
 * How a statement asks whether a value is in a query, or in a list.
 *
 * <p>By default Calcite takes NULL for a value that is NOT IN what has no NULL, so that a DELETE deletes such rows. A query is made a join by
 * Calcite's rules instead. That is not needed where its IN is a condition of its own, joined by AND: there NULL and FALSE are one. Of a list,
 * which Calcite compares one by one unless it is long, the value is also compared with itself.
 */
final class QueryOperands extends SqlBasicVisitor<Void> {

    private static final BigDecimal MOST_ROWS = BigDecimal.valueOf(Integer.MAX_VALUE);

    private boolean needNulls;
    /** Whether the node that is visited is a whole WHERE or HAVING, or joined to one by AND. */
    private boolean isCondition;

    private QueryOperands() {
    }

    static QueryOperands of(SqlNode statement) {
        QueryOperands found = new QueryOperands();
        statement.accept(found);
        return found;
    }

    /** Whether IN a query has to tell NULL from FALSE. */
    boolean needNulls() {
        return needNulls;
    }

    @Override
    public Void visit(SqlCall call) {
        if (call instanceof SqlOrderBy limited) {
            refuseAboveMost(limited.fetch, "LIMIT");
            refuseAboveMost(limited.offset, "OFFSET");
        }
        boolean isNot = call.getKind() == SqlKind.NOT_IN;
        if (isNot || call.getKind() == SqlKind.IN) {
            if (!(call.operand(1) instanceof SqlNodeList list)) {
                needNulls |= isNot || !isCondition;
            } else if (isNot && list.size() >= SqlToRelConverter.DEFAULT_IN_SUB_QUERY_THRESHOLD) {
                return compareWithItself((SqlBasicCall) call);
            }
        }
        boolean before = isCondition;
        isCondition = call instanceof SqlSelect || call instanceof SqlDelete || call instanceof SqlUpdate
                || before && call.getKind() == SqlKind.AND;
        super.visit(call);
        isCondition = before;
        return null;
    }

    /** That is NULL for NULL, and TRUE for all else. */
    private Void compareWithItself(SqlBasicCall notIn) {
        SqlNode value = notIn.operand(0);
        if (value.getKind() == SqlKind.ROW) {
            throw new StatementExecutionException("NOT IN is not supported for several columns with a long list: HerdDB would find other rows."
                    + " Write several lists, joined by AND");
        }
        SqlCall plain = notIn.getOperator().createCall(notIn.getParserPosition(), value, notIn.operand(1));
        notIn.setOperator(SqlStdOperatorTable.AND);
        notIn.setOperand(0, plain);
        notIn.setOperand(1, SqlStdOperatorTable.EQUALS.createCall(notIn.getParserPosition(), SqlNode.clone(value), SqlNode.clone(value)));
        return super.visit(plain);
    }

    /** Such as what is selected, and not the conditions. */
    @Override
    public Void visit(SqlNodeList list) {
        boolean before = isCondition;
        isCondition = false;
        super.visit(list);
        isCondition = before;
        return null;
    }

    private static void refuseAboveMost(SqlNode rows, String part) {
        if (rows instanceof SqlNumericLiteral number && number.bigDecimalValue().compareTo(MOST_ROWS) > 0) {
            throw new StatementExecutionException(part + " " + number.toValue() + " is not supported: HerdDB would cut the number off."
                    + " It counts up to " + MOST_ROWS + " rows");
        }
    }

    /**
     * Calcite says NULL where SQL says FALSE: for a NULL and a query that finds nothing for its row, and for several values of which only others
     * than the NULL differ.
     */
    static void refuseInexact(RelNode rows) {
        new RelVisitor() {
            @Override
            public void visit(RelNode node, int ordinal, RelNode parent) {
                int[] operands = {0};
                node.accept(new RexShuttle() {
                    @Override
                    public RexNode visitSubQuery(RexSubQuery query) {
                        operands[0] += query.getKind() == SqlKind.IN ? 1 : 0;
                        if (operands[0] > 1 && node instanceof Filter) { // Calcite counts the NULLs of the first query for all of them
                            throw new StatementExecutionException("several queries behind IN, of which one has NOT or OR, are not supported:"
                                    + " HerdDB would find other rows. Write [NOT] EXISTS (SELECT … WHERE column = …)");
                        }
                        refuseInexact(query);
                        return super.visitSubQuery(query);
                    }
                });
                super.visit(node, ordinal, parent);
            }
        }.go(rows);
    }

    private static void refuseInexact(RexSubQuery query) {
        if (query.getKind() == SqlKind.IN && isCorrelated(query.rel)) {
            throw new StatementExecutionException("NOT IN, or IN without AND, is not supported with a query that has columns of the query around"
                    + " it: HerdDB would find other rows. Write [NOT] EXISTS (SELECT … AND column = …)");
        }
        if (query.getKind() == SqlKind.IN && query.getOperands().size() > 1 && query.getType().isNullable()) {
            throw new StatementExecutionException("NOT IN, or IN without AND, is not supported for several columns that may be NULL: HerdDB would"
                    + " find other rows. Write [NOT] EXISTS (SELECT … WHERE one = … AND other = …)");
        }
        refuseInexact(query.rel);
    }

    private static boolean isCorrelated(RelNode query) {
        Set<CorrelationId> used = new HashSet<>(RelOptUtil.getVariablesUsed(query));
        new RelVisitor() {
            @Override
            public void visit(RelNode node, int ordinal, RelNode parent) {
                used.removeAll(node.getVariablesSet());
                super.visit(node, ordinal, parent);
            }
        }.go(query);
        return !used.isEmpty();
    }
}
