package herddb.model.planner;

import herddb.core.MaterializedRecordSet;
import herddb.core.SimpleDataScanner;
import herddb.core.TableSpaceManager;
import herddb.model.Column;
import herddb.model.ColumnTypes;
import herddb.model.DataScanner;
import herddb.model.DataScannerException;
import herddb.model.ScanResult;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.StatementExecutionResult;
import herddb.model.TransactionContext;
import herddb.model.Tuple;
import herddb.sql.SQLRecordPredicate;
import herddb.sql.expressions.Values;
import herddb.utils.DataAccessor;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.stream.IntStream;

/**
 * GROUP BY and its functions, instead of HerdDB's class of this name.
 *
 * <p>HerdDB counts NULLs in COUNT and AVG, adds doubles without their decimals, and returns 0 for the SUM of no rows.
 */
public final class AggregateOp extends OpWithInput {

    private final String[] fields;
    private final Column[] columns;
    private final String[] functions;
    private final List<List<Integer>> arguments;
    private final List<Integer> grouping;

    /**
     * Groups the input's rows.
     *
     * @param fields the names of the result's columns: those that are grouped by, then one for each function
     * @param arguments of each function, as positions in the input's rows
     * @param grouping the positions of what is grouped by
     */
    public AggregateOp(PlannerOp input, String[] fields, Column[] columns, String[] functions, List<List<Integer>> arguments,
            List<Integer> grouping) {
        super(input.optimize());
        this.fields = fields;
        this.columns = columns;
        this.functions = functions;
        this.arguments = arguments;
        this.grouping = grouping;
    }

    @Override
    public StatementExecutionResult execute(TableSpaceManager tablespace, TransactionContext transaction,
            StatementEvaluationContext context, boolean lockRequired, boolean forWrite) throws StatementExecutionException {
        ScanResult scanned = (ScanResult) input.execute(tablespace, transaction, context, lockRequired, forWrite);
        try (DataScanner rows = scanned.dataScanner) {
            Map<Key, Aggregate[]> groups = new HashMap<>();
            if (grouping.isEmpty()) {
                groups.put(new Key(new Object[0]), aggregates());
            }
            while (rows.hasNext()) {
                DataAccessor row = rows.next();
                Object[] key = grouping.stream().map(row::get).toArray();
                for (Aggregate aggregate : groups.computeIfAbsent(new Key(key), any -> aggregates())) {
                    aggregate.add(row);
                }
            }
            MaterializedRecordSet results = tablespace.getDbmanager().getRecordSetFactory()
                    .createFixedSizeRecordSet(groups.size(), fields, columns);
            groups.forEach((key, aggregates) -> results.add(new Tuple(fields, values(key, aggregates))));
            results.writeFinished();
            return new ScanResult(scanned.transactionId, new SimpleDataScanner(rows.getTransaction(), results));
        } catch (DataScannerException | ArithmeticException error) {
            throw new StatementExecutionException(error);
        }
    }

    private Aggregate[] aggregates() {
        Aggregate[] aggregates = new Aggregate[functions.length];
        for (int i = 0; i < functions.length; i++) {
            int type = columns[columns.length - functions.length + i].type;
            aggregates[i] = new Aggregate(functions[i].toLowerCase(Locale.ROOT), type, arguments.get(i));
        }
        return aggregates;
    }

    private Object[] values(Key key, Aggregate[] aggregates) {
        Object[] values = Arrays.copyOf(key.values, fields.length);
        for (int i = 0; i < aggregates.length; i++) {
            values[key.values.length + i] = aggregates[i].value();
        }
        return values;
    }

    @Override
    public Column[] getOutputSchema() {
        return columns;
    }

    @Override
    public String toString() {
        return "AggregateOp{fields=" + Arrays.toString(fields) + ", functions=" + Arrays.toString(functions) + ", arguments=" + arguments
                + ", grouping=" + grouping + "\ninput=" + input + '}';
    }

    /** A list, or a UNION ALL, may have a value as an INT and as a LONG, or a text as either of HerdDB's classes. */
    private record Key(Object[] values) {

        @Override
        public boolean equals(Object other) {
            return other instanceof Key key && IntStream.range(0, values.length).allMatch(i -> isAlike(values[i], key.values[i]));
        }

        private static boolean isAlike(Object one, Object other) {
            return one == null || other == null || one.getClass() == other.getClass()
                    ? Objects.deepEquals(one, other) : Values.compare(one, other) == 0;
        }

        @Override
        public int hashCode() {
            int hash = 0;
            for (Object value : values) {
                hash = 31 * hash + (value != null && value.getClass().isArray() ? Arrays.deepHashCode(new Object[] {value}) : JoinKey.hash(value));
            }
            return hash;
        }
    }

    /** What a function has made of the rows of a group. It leaves out those where an argument is NULL. */
    private static final class Aggregate {

        private final String function;
        private final int type;
        private final List<Integer> arguments;
        private long count;
        private long whole;
        private double real;
        private boolean isReal;
        private Object chosen;

        Aggregate(String function, int type, List<Integer> arguments) {
            this.function = function;
            this.type = type;
            this.arguments = arguments;
            this.isReal = type == ColumnTypes.DOUBLE || type == ColumnTypes.NOTNULL_DOUBLE;
        }

        void add(DataAccessor row) {
            Object value = arguments.isEmpty() ? null : row.get(arguments.get(0));
            if (function.equals("single_value")) {
                chosen = value;
            } else if (arguments.stream().anyMatch(argument -> row.get(argument) == null)) {
                return;
            }
            count++;
            switch (function) {
                case "sum", "$sum0", "avg" -> sum((Number) value);
                case "min" -> chosen = chosen == null || Values.compare(value, chosen) < 0 ? value : chosen;
                case "max" -> chosen = chosen == null || Values.compare(value, chosen) > 0 ? value : chosen;
                default -> { }
            }
        }

        /** The planner does not know which columns are doubles. */
        private void sum(Number value) {
            if (value instanceof Double || value instanceof Float) {
                isReal = true;
                real += value.doubleValue();
            } else {
                whole = Math.addExact(whole, value.longValue());
            }
        }

        Object value() {
            return switch (function) {
                case "count" -> count;
                case "$sum0" -> sum();
                case "sum" -> count == 0 ? null : sum();
                case "avg" -> count == 0 ? null : isReal ? (Object) ((real + whole) / count) : SQLRecordPredicate.cast(whole / count, type);
                case "min", "max" -> chosen;
                case "single_value" -> single();
                default -> throw new StatementExecutionException("the function " + function + " is not implemented");
            };
        }

        private Object sum() {
            return isReal ? (Object) (real + whole) : (Object) whole;
        }

        private Object single() {
            if (count > 1) {
                throw new StatementExecutionException("a subquery that is used as one value returns " + count + " rows");
            }
            return chosen;
        }
    }
}
