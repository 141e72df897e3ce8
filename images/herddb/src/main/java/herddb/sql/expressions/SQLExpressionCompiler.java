package herddb.sql.expressions;

import static java.util.Map.entry;

import com.google.common.collect.BoundType;
import com.google.common.collect.Range;
import herddb.model.ColumnTypes;
import herddb.model.StatementExecutionException;
import herddb.sql.CalcitePlanner;
import herddb.sql.functions.BuiltinFunctions;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Map.Entry;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rex.RexCall;
import org.apache.calcite.rex.RexDynamicParam;
import org.apache.calcite.rex.RexFieldAccess;
import org.apache.calcite.rex.RexInputRef;
import org.apache.calcite.rex.RexLiteral;
import org.apache.calcite.rex.RexNode;
import org.apache.calcite.rex.RexSubQuery;
import org.apache.calcite.rex.RexUnknownAs;
import org.apache.calcite.sql.type.SqlTypeName;
import org.apache.calcite.util.DateString;
import org.apache.calcite.util.NlsString;
import org.apache.calcite.util.Sarg;
import org.apache.calcite.util.TimestampString;

/**
 * Makes HerdDB's expressions of Calcite's, instead of HerdDB's class of this name. That one knows no range without an end, such as those of
 * {@code NOT IN (1, 2)}, and cuts the decimals of a constant FLOAT. It takes a column of the query around a query for one of the row at hand,
 * and FALSE for NULL ({@link NullableCondition}).
 */
public final class SQLExpressionCompiler {

    private static final Map<String, String> FUNCTIONS = Map.ofEntries(
            entry(BuiltinFunctions.NAME_CURRENT_TIMESTAMP, BuiltinFunctions.CURRENT_TIMESTAMP),
            entry(BuiltinFunctions.NAME_CURRENT_DATE, BuiltinFunctions.NAME_CURRENT_DATE),
            entry(BuiltinFunctions.NAME_LOWERCASE, BuiltinFunctions.LOWER),
            entry(BuiltinFunctions.NAME_UPPER, BuiltinFunctions.UPPER),
            entry(BuiltinFunctions.NAME_ABS, BuiltinFunctions.ABS),
            entry(BuiltinFunctions.NAME_COSINE_SIMILARITY, BuiltinFunctions.COSINE_SIMILARITY),
            entry(BuiltinFunctions.NAME_DOT_PRODUCT, BuiltinFunctions.DOT_PRODUCT),
            entry(BuiltinFunctions.NAME_EUCLIDEAN_DISTANCE, BuiltinFunctions.EUCLIDEAN_DISTANCE),
            entry(BuiltinFunctions.NAME_ROUND, BuiltinFunctions.ROUND),
            entry(BuiltinFunctions.NAME_EXTRACT, BuiltinFunctions.EXTRACT),
            entry(BuiltinFunctions.NAME_FLOOR, BuiltinFunctions.FLOOR),
            entry(BuiltinFunctions.NAME_RAND, BuiltinFunctions.RAND));

    private SQLExpressionCompiler() {
    }

    /** Null for null. A condition may be FALSE where SQL's is NULL, which makes no difference to WHERE. */
    public static CompiledSQLExpression compileExpression(RexNode expression) {
        if (expression == null) {
            return null;
        }
        if (expression instanceof RexDynamicParam parameter) {
            return new TypedJdbcParameterExpression(parameter.getIndex(), type(parameter));
        }
        if (expression instanceof RexLiteral literal) {
            return literal.isNull() ? new ConstantExpression(null, ColumnTypes.NULL) : constant(literal.getValue3(), literal.getType());
        }
        if (expression instanceof RexInputRef column) {
            return new AccessCurrentRowExpression(column.getIndex(), type(column));
        }
        if (expression instanceof RexCall call && !(call instanceof RexSubQuery)) {
            return compiled(call);
        }
        throw new StatementExecutionException(expression instanceof RexFieldAccess || expression instanceof RexSubQuery
                ? "a query is not supported at this place, or not with columns of the query around it. Write a join, or [NOT] EXISTS in WHERE"
                : "the expression " + expression + " is not supported");
    }

    private static CompiledSQLExpression compiled(RexCall call) {
        switch (call.getKind()) {
            case AND:
                return new CompiledMultiAndExpression(all(call.getOperands()));
            case OR:
                return new CompiledMultiOrExpression(all(call.getOperands()));
            case CASE:
                return choice(call.getOperands());
            case SEARCH:
                return search(call);
            default:
        }
        CompiledSQLExpression[] operands = call.getOperands().stream().map(SQLExpressionCompiler::exact).toArray(CompiledSQLExpression[]::new);
        String name = call.getOperator().getName();
        if (FUNCTIONS.containsKey(name)) {
            return new CompiledFunction(FUNCTIONS.get(name), List.of(operands));
        }
        CompiledSQLExpression of = operands.length == 0 ? null : operands[0];
        return switch (name) {
            case "-" -> operands.length == 1 ? new CompiledSignedExpression('-', of) : new CompiledSubtractExpression(of, operands[1]);
            case "NOT" -> new CompiledParenthesisExpression(true, of);
            case "IS NULL", "IS UNKNOWN" -> new CompiledIsNullExpression(false, of);
            case "IS NOT NULL", "IS NOT UNKNOWN" -> new CompiledIsNullExpression(true, of);
            case "IS TRUE" -> new CompiledIsNotTrueExpression(true, of);
            case "IS NOT TRUE" -> new CompiledIsNotTrueExpression(false, of);
            case "IS FALSE" -> new CompiledIsNotTrueExpression(true, new CompiledParenthesisExpression(true, of));
            case "IS NOT FALSE" -> new CompiledIsNotTrueExpression(false, new CompiledParenthesisExpression(true, of));
            case "IS NOT DISTINCT FROM" -> alike(of, operands[1]);
            case "IS DISTINCT FROM" -> new CompiledParenthesisExpression(true, alike(of, operands[1]));
            case "CAST" -> of.cast(type(call));
            case BuiltinFunctions.NAME_REINTERPRET -> of;
            default -> ofTwo(name, operands);
        };
    }

    private static CompiledSQLExpression ofTwo(String name, CompiledSQLExpression[] operands) {
        if (operands.length == 3 && name.equals("LIKE")) {
            return new CompiledLikeExpression(operands[0], operands[1], operands[2]); // ESCAPE
        }
        if (operands.length != 2) {
            throw new StatementExecutionException("unsupported operator '" + name + "'");
        }
        CompiledSQLExpression left = operands[0];
        CompiledSQLExpression right = operands[1];
        return switch (name) {
            case "=" -> new CompiledEqualsExpression(left, right);
            case "<>" -> new CompiledNotEqualsExpression(left, right);
            case ">" -> new CompiledGreaterThanExpression(left, right);
            case ">=" -> new CompiledGreaterThanEqualsExpression(left, right);
            case "<" -> new CompiledMinorThanExpression(left, right);
            case "<=" -> new CompiledMinorThanEqualsExpression(left, right);
            case "+" -> new CompiledAddExpression(left, right);
            case "*" -> new CompiledMultiplyExpression(left, right);
            case "/" -> new CompiledDivideExpression(left, right);
            case "/INT" -> new CompiledDivideIntExpression(left, right);
            case "MOD" -> new CompiledModuloExpression(left, right);
            case "LIKE" -> new CompiledLikeExpression(left, right);
            default -> throw new StatementExecutionException("unsupported operator '" + name + "'");
        };
    }

    /** With NULL where SQL's condition is NULL, as who selects it, or negates it, has to know. */
    private static CompiledSQLExpression exact(RexNode expression) {
        if (!(expression instanceof RexCall call) || call instanceof RexSubQuery) {
            return compileExpression(expression);
        }
        return switch (call.getKind()) {
            case AND, OR -> NullableCondition.joined(call.getOperands().stream().map(SQLExpressionCompiler::exact).toList(),
                    call.getOperator().getName().equals("OR"));
            case EQUALS, NOT_EQUALS, LESS_THAN, LESS_THAN_OR_EQUAL, GREATER_THAN, GREATER_THAN_OR_EQUAL -> NullableCondition.of(
                    compiled(call), call.getOperands().stream().map(SQLExpressionCompiler::exact).toList());
            case SEARCH -> range(call).nullAs == RexUnknownAs.UNKNOWN
                    ? NullableCondition.of(compiled(call), List.of(compileExpression(call.getOperands().get(0)))) : compiled(call);
            default -> compiled(call);
        };
    }

    private static CompiledSQLExpression[] all(List<RexNode> expressions) {
        return expressions.stream().map(SQLExpressionCompiler::compileExpression).toArray(CompiledSQLExpression[]::new);
    }

    /** CASE, with the value for all else, if there is one, at the end. */
    private static CompiledSQLExpression choice(List<RexNode> operands) {
        List<Entry<CompiledSQLExpression, CompiledSQLExpression>> cases = new ArrayList<>();
        for (int i = 0; i + 1 < operands.size(); i += 2) {
            cases.add(entry(compileExpression(operands.get(i)), exact(operands.get(i + 1))));
        }
        return new CompiledCaseExpression(cases, operands.size() % 2 == 1 ? exact(operands.get(operands.size() - 1)) : null);
    }

    private static CompiledSQLExpression alike(CompiledSQLExpression one, CompiledSQLExpression other) {
        return new CompiledOrExpression(new CompiledEqualsExpression(one, other),
                new CompiledAndExpression(new CompiledIsNullExpression(false, one), new CompiledIsNullExpression(false, other)));
    }

    private static Sarg<?> range(RexCall search) {
        return ((RexLiteral) search.getOperands().get(1)).getValueAs(Sarg.class);
    }

    /** Whether a value is in one of some ranges. */
    private static CompiledSQLExpression search(RexCall call) {
        CompiledSQLExpression value = exact(call.getOperands().get(0));
        RelDataType type = call.getOperands().get(1).getType();
        Sarg<?> sought = range(call);
        CompiledSQLExpression found;
        if (sought.isComplementedPoints()) {
            found = joined(sought.rangeSet.complement().asRanges().stream().<CompiledSQLExpression>map(
                    point -> new CompiledNotEqualsExpression(value, constant(point.lowerEndpoint(), type))).toList(), true);
        } else {
            found = joined(sought.rangeSet.asRanges().stream().map(range -> within(value, range, type)).toList(), false);
        }
        return switch (sought.nullAs) {
            case UNKNOWN -> found;
            case TRUE -> new CompiledOrExpression(new CompiledIsNullExpression(false, value), found);
            case FALSE -> new CompiledAndExpression(new CompiledIsNullExpression(true, value), found);
        };
    }

    private static CompiledSQLExpression within(CompiledSQLExpression value, Range<?> range, RelDataType type) {
        if (range.hasLowerBound() && range.hasUpperBound() && range.lowerEndpoint().equals(range.upperEndpoint())) {
            return new CompiledEqualsExpression(value, constant(range.lowerEndpoint(), type));
        }
        CompiledSQLExpression above = null;
        if (range.hasLowerBound()) {
            CompiledSQLExpression least = constant(range.lowerEndpoint(), type);
            above = range.lowerBoundType() == BoundType.OPEN
                    ? new CompiledGreaterThanExpression(value, least) : new CompiledGreaterThanEqualsExpression(value, least);
        }
        if (!range.hasUpperBound()) {
            return above == null ? new CompiledIsNullExpression(true, value) : above;
        }
        CompiledSQLExpression most = constant(range.upperEndpoint(), type);
        CompiledSQLExpression below = range.upperBoundType() == BoundType.OPEN
                ? new CompiledMinorThanExpression(value, most) : new CompiledMinorThanEqualsExpression(value, most);
        return above == null ? below : new CompiledAndExpression(above, below);
    }

    private static CompiledSQLExpression joined(List<CompiledSQLExpression> parts, boolean byAnd) {
        CompiledSQLExpression[] operands = parts.toArray(CompiledSQLExpression[]::new);
        if (operands.length == 1) {
            return operands[0];
        }
        return byAnd ? new CompiledMultiAndExpression(operands) : new CompiledMultiOrExpression(operands);
    }

    private static ConstantExpression constant(Object value, RelDataType type) {
        return new ConstantExpression(plain(value, type.getSqlTypeName()), CalcitePlanner.convertToHerdType(type));
    }

    /** As a row may have it. */
    private static Object plain(Object value, SqlTypeName type) {
        if (value instanceof BigDecimal number) {
            return switch (type) {
                case DECIMAL, DOUBLE, FLOAT -> (Object) number.doubleValue();
                default -> number.longValue();
            };
        }
        if (value instanceof NlsString text) {
            return text.getValue();
        }
        if (value instanceof TimestampString moment) {
            return moment.getMillisSinceEpoch();
        }
        return value instanceof DateString day ? (Object) day.getDaysSinceEpoch() : value;
    }

    private static int type(RexNode expression) {
        return CalcitePlanner.convertToHerdType(expression.getType());
    }
}
