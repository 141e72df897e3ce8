package io.herdkeeper.node.digest;

import herddb.core.AbstractTableManager;
import herddb.core.LocalScanPageCache;
import herddb.core.TableManager;
import herddb.core.TableSpaceManager;
import herddb.index.PrimaryIndexRangeScan;
import herddb.model.Record;
import herddb.model.StatementEvaluationContext;
import herddb.model.Table;
import herddb.model.TableContext;
import herddb.sql.SQLRecordKeyFunction;
import herddb.utils.Bytes;
import java.nio.ByteBuffer;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Predicate;

/** What a tablespace has of rows, as HerdDB stores them. */
public final class StoredRows {

    private StoredRows() {
    }

    /** The committed tables that SQL made, by name: without HerdDB's own, and those that go at this moment. */
    public static List<AbstractTableManager> tables(TableSpaceManager tableSpace) {
        return tableSpace.getAllCommittedTables().stream()
                .sorted(Comparator.comparing((Table table) -> table.name))
                .map(table -> tableSpace.getTableManager(table.name))
                .filter(Objects::nonNull)
                .filter(manager -> !manager.isSystemTable())
                .toList();
    }

    /**
     * Shows the committed rows whose stored keys lie behind {@code after} and not behind {@code upTo}, by key, until {@code visit} has
     * enough. The caller sees to it that no row is committed meanwhile.
     *
     * <p>No lock is taken: a row that an open transaction has changed or deleted is shown as it was committed. HerdDB keeps the
     * changes in the transaction until its COMMIT. A scan that locks rows would wait for that transaction. A checkpoint may move a row to
     * another page meanwhile; HerdDB then looks the page up again.
     *
     * @param after the key before the first one that is shown; null to begin with the first
     * @param upTo  the last key that is shown; null to end with the last
     * @param visit tells whether it wants another row
     * @return whether all were shown: {@code visit} wanted another one each time
     */
    public static boolean visit(AbstractTableManager table, Bytes after, Bytes upTo, Predicate<Record> visit) {
        TableManager rows = (TableManager) table;
        StatementEvaluationContext context = StatementEvaluationContext.DEFAULT_EVALUATION_CONTEXT();
        LocalScanPageCache page = new LocalScanPageCache();
        PrimaryIndexRangeScan range = after == null && upTo == null ? null
                : PrimaryIndexRangeScan.ofStoredKeys(StoredKey.of(after, table.getTable()), StoredKey.of(upTo, table.getTable()));
        Iterator<Map.Entry<Bytes, Long>> keys = table.getKeyToPageIndex().scanner(range, context, null, null).iterator();
        while (keys.hasNext()) {
            Map.Entry<Bytes, Long> key = keys.next();
            if (key.getKey().equals(after)) {
                continue; // HerdDB's range begins with it
            }
            Record row = rows.accessRecord(key, null, context, null, page, false, false, false);
            if (row != null && !visit.test(row)) {
                return false;
            }
        }
        return true;
    }

    /** A key or a value, not copied. */
    public static ByteBuffer buffer(Bytes bytes) {
        return ByteBuffer.wrap(bytes.getBuffer(), bytes.getOffset(), bytes.getLength());
    }

    /** A key as it is stored, where HerdDB expects one that it has to compute from SQL. */
    private static final class StoredKey extends SQLRecordKeyFunction {

        private final byte[] key;

        private StoredKey(byte[] key, Table table) {
            super(List.of(), List.of(), table);
            this.key = key;
        }

        static StoredKey of(Bytes key, Table table) {
            return key == null ? null : new StoredKey(key.to_array(), table);
        }

        @Override
        public byte[] computeNewValue(Record previous, StatementEvaluationContext context, TableContext tableContext) {
            return key;
        }
    }
}
