package herddb.model.commands;

import herddb.core.HerdDBInternalException;
import herddb.index.IndexOperation;
import herddb.index.PrimaryIndexPrefixScan;
import herddb.index.PrimaryIndexRangeScan;
import herddb.index.PrimaryIndexSeek;
import herddb.index.SecondaryIndexPrefixScan;
import herddb.index.SecondaryIndexRangeScan;
import herddb.index.SecondaryIndexSeek;
import herddb.model.InvalidNullValueForKeyException;
import herddb.model.Predicate;
import herddb.model.Record;
import herddb.model.RecordFunction;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.TableContext;
import herddb.utils.Bytes;
import io.herdkeeper.node.log.RowSizes;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;

/**
 * What a change computes for its rows, with what it can't compute as an error of the statement.
 *
 * <p>HerdDB does not expect what its functions throw: {@code lower(NULL)}, or a comparison of a number with a text. It would keep a lock of
 * the table. The next checkpoint would wait for that lock for ever, with the whole tablespace locked.
 */
final class Computing {

    private Computing() {
    }

    static Predicate condition(Predicate condition) {
        return new Condition(condition);
    }

    static RecordFunction values(RecordFunction values) {
        return new RecordFunction() {
            @Override
            public byte[] computeNewValue(Record row, StatementEvaluationContext context, TableContext table) {
                byte[] value = orRefused(() -> values.computeNewValue(row, context, table));
                // HerdDB looks at the size when it has locked the row's values of unique indexes, and keeps these locks for ever
                RowSizes.refuseTooBig(row.key, value.length, context.getManager().getMaxLogicalPageSize());
                return value;
            }

            @Override
            public int estimateObjectSizeForCache() {
                return values.estimateObjectSizeForCache();
            }

            @Override
            public String toString() {
                return values.toString();
            }
        };
    }

    private static <T> T orRefused(Supplier<T> computing) {
        try {
            return computing.get();
        } catch (HerdDBInternalException expected) {
            throw expected;
        } catch (RuntimeException error) {
            throw new StatementExecutionException("the statement can't be computed: " + error, error);
        }
    }

    private static final class Condition extends Predicate {

        private final Predicate condition;

        Condition(Predicate condition) {
            this.condition = condition;
        }

        @Override
        public boolean evaluate(Record row, StatementEvaluationContext context) {
            return orRefused(() -> condition.evaluate(row, context));
        }

        @Override
        public PrimaryKeyMatchOutcome matchesRawPrimaryKey(Bytes key, StatementEvaluationContext context) {
            return orRefused(() -> condition.matchesRawPrimaryKey(key, context));
        }

        /** Also of the keys that the index is asked for. */
        @Override
        public void validateContext(StatementEvaluationContext context) {
            orRefused(() -> {
                condition.validateContext(context);
                for (RecordFunction key : keys(condition.getIndexOperation())) {
                    try {
                        key.computeNewValue(null, context, null);
                    } catch (HerdDBInternalException expected) {
                        // HerdDB says so, or finds no row by it
                    }
                }
                return null;
            });
        }

        private static List<RecordFunction> keys(IndexOperation index) {
            RecordFunction[] keys = {};
            if (index instanceof PrimaryIndexSeek one) {
                keys = new RecordFunction[] {one.value};
            } else if (index instanceof SecondaryIndexSeek one) {
                keys = new RecordFunction[] {one.value};
            } else if (index instanceof PrimaryIndexPrefixScan prefix) {
                keys = new RecordFunction[] {prefix.value};
            } else if (index instanceof SecondaryIndexPrefixScan prefix) {
                keys = new RecordFunction[] {prefix.value};
            } else if (index instanceof PrimaryIndexRangeScan range) {
                keys = new RecordFunction[] {range.minValue, range.maxValue};
            } else if (index instanceof SecondaryIndexRangeScan range) {
                keys = new RecordFunction[] {range.minValue, range.maxValue};
            }
            return Arrays.stream(keys).filter(Objects::nonNull).toList();
        }

        @Override
        public IndexOperation getIndexOperation() {
            IndexOperation index = condition.getIndexOperation();
            return index instanceof PrimaryIndexSeek one ? new PrimaryIndexSeek(orEmpty(one.value)) : index;
        }

        /** No key is NULL. By an empty one, that of an empty text, HerdDB finds no row: it asks for the whole condition, too. */
        private static RecordFunction orEmpty(RecordFunction key) {
            return new RecordFunction() {
                @Override
                public byte[] computeNewValue(Record row, StatementEvaluationContext context, TableContext table) {
                    try {
                        return key.computeNewValue(row, context, table);
                    } catch (InvalidNullValueForKeyException none) {
                        return new byte[0];
                    }
                }
            };
        }

        @Override
        public void setIndexOperation(IndexOperation index) {
            condition.setIndexOperation(index);
        }

        @Override
        public int estimateObjectSizeForCache() {
            return condition.estimateObjectSizeForCache();
        }

        @Override
        public <T> T unwrap(Class<T> type) {
            return condition.unwrap(type);
        }

        @Override
        public String toString() {
            return condition.toString();
        }
    }
}
