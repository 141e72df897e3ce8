package herddb.index;

import herddb.codec.RecordSerializer;
import herddb.core.AbstractIndexManager;
import herddb.core.MemoryManager;
import herddb.index.blink.BLinkKeyToPageIndex;
import herddb.model.InvalidNullValueForKeyException;
import herddb.model.Record;
import herddb.model.StatementEvaluationContext;
import herddb.model.TableContext;
import herddb.model.Transaction;
import herddb.storage.DataStorageManager;
import herddb.utils.Bytes;
import java.util.Arrays;
import java.util.Map;
import java.util.Map.Entry;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The keys of a table, of which an index chooses some. HerdDB asks any index of the name that a statement was planned for, though it may have been
 * made again over other columns. And an index has the rows as they are committed: a transaction would not find those that it has changed.
 */
public final class TableKeys extends BLinkKeyToPageIndex {

    private static final ThreadLocal<Transaction> OWN = new ThreadLocal<>();

    public TableKeys(String tablespace, String table, MemoryManager memory, DataStorageManager files) {
        super(tablespace, table, memory, files);
    }

    /** Has a statement of a transaction find what that has changed; {@code own} is null outside of transactions. */
    public static <T> T within(Transaction own, Supplier<T> statement) {
        Transaction before = OWN.get();
        OWN.set(own);
        try {
            return statement.get();
        } finally {
            OWN.set(before);
        }
    }

    @Override
    public Stream<Entry<Bytes, Long>> scanner(
            IndexOperation operation, StatementEvaluationContext context, TableContext table, AbstractIndexManager index) {
        String[] planned = columns(operation);
        if (planned == null) {
            return super.scanner(operation, context, table, null);
        }
        if (index == null || !Arrays.equals(planned, index.getColumnNames())) {
            return super.scanner(null, context, table, null); // HerdDB looks at each row again
        }
        try {
            Stream<Entry<Bytes, Long>> committed = super.scanner(operation, context, table, index);
            Transaction own = OWN.get();
            Map<Bytes, Record> changed = own == null ? null : own.changedRecords.get(index.getIndex().table);
            if (changed == null || changed.isEmpty()) {
                return committed;
            }
            Set<Bytes> keys = changed(changed, operation, context, table, index);
            return Stream.concat(committed.filter(row -> !keys.contains(row.getKey())), keys.stream().flatMap(this::row));
        } catch (InvalidNullValueForKeyException none) {
            return Stream.empty(); // nothing equals NULL
        }
    }

    /** The keys of changed rows that HerdDB has to look at. It locks each, so those with another value than one that is sought are left out. */
    private static Set<Bytes> changed(Map<Bytes, Record> changed, IndexOperation operation, StatementEvaluationContext context,
            TableContext table, AbstractIndexManager index) {
        if (!(operation instanceof SecondaryIndexSeek one)) {
            return Set.copyOf(changed.keySet());
        }
        Bytes sought = Bytes.from_array(one.value.computeNewValue(null, context, table));
        return changed.values().stream()
                .filter(row -> sought.equals(RecordSerializer.serializeIndexKey(
                        row.getDataAccessor(table.getTable()), index.getIndex(), index.getColumnNames())))
                .map(row -> row.key)
                .collect(Collectors.toSet());
    }

    private Stream<Entry<Bytes, Long>> row(Bytes key) {
        Long page = get(key);
        return page == null ? Stream.empty() : Stream.of(Map.entry(key, page));
    }

    /** Those of the index that was planned for; null if none was. */
    private static String[] columns(IndexOperation operation) {
        if (operation instanceof SecondaryIndexSeek one) {
            return one.columnsToMatch;
        }
        if (operation instanceof SecondaryIndexPrefixScan prefix) {
            return prefix.columnsToMatch;
        }
        return operation instanceof SecondaryIndexRangeScan range ? range.columnsToMatch : null;
    }
}
