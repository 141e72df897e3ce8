package io.herdkeeper.node.statement;

import herddb.codec.RecordSerializer;
import herddb.core.AbstractIndexManager;
import herddb.core.TableManager;
import herddb.core.TableSpaceManager;
import herddb.model.Column;
import herddb.model.Index;
import herddb.model.Record;
import herddb.model.StatementExecutionException;
import herddb.model.Table;
import herddb.model.TableDoesNotExistException;
import herddb.model.Transaction;
import herddb.model.TransactionContext;
import herddb.utils.Bytes;
import herddb.utils.XXHash64Utils;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/** Which indexes are refused, by a CREATE INDEX or with a CREATE TABLE. */
final class IndexRefusals {

    private IndexRefusals() {
    }

    /**
     * HerdDB logs an index first and reads all rows for it then, which waits in vain for those that another transaction has locked.
     *
     * <p>Another statement may have changed the table since this one was planned. Over a column that is gone, no node could apply a change of a
     * row.
     *
     * <p>An index on a table that its own transaction has dropped would outlive it, without its files. The next table of that name would get
     * it, and no node could write a checkpoint of that table.
     */
    static void refuseIndex(TableSpaceManager tablespace, Index index, TransactionContext transaction) {
        String table = index.table;
        Transaction own = tablespace.getTransaction(transaction.transactionId);
        if (tablespace.getTableManager(table) == null || own != null && own.isTableDropped(table)) {
            throw new TableDoesNotExistException("no table " + table + " in tablespace " + tablespace.getTableSpaceName()
                    + ": it was dropped or renamed");
        }
        String refused = "CREATE INDEX on " + tablespace.getTableSpaceName() + "." + table + " is refused, and nothing was changed: ";
        for (Column column : index.columns) {
            Column now = tablespace.getTableManager(table).getTable().getColumn(column.name);
            if (now == null || now.type != column.type) {
                throw new StatementExecutionException(refused + "the column " + column.name + " was changed or dropped meanwhile");
            }
        }
        if (TableRefusals.isInATransaction(tablespace, table, transaction.transactionId)) {
            throw new StatementExecutionException(refused + "a transaction is open on it; commit it or roll it back first");
        }
        if (!makesTheTable(own, index) && locksRows(own, table)) {
            throw new StatementExecutionException(refused + "it is made outside of transactions, and this transaction has changed or locked"
                    + " rows of the table; commit it or roll it back first");
        }
        refuseNameOfATable(tablespace, index, table);
        if (tablespace.getTransactions().stream().anyMatch(each -> each.isIndexDropped(index.name))) {
            throw new StatementExecutionException(refused + "a transaction drops an index " + index.name
                    + ", and its COMMIT would drop this one; commit it or roll it back first");
        }
        if (index.unique) {
            refuseRows((TableManager) tablespace.getTableManager(table), index, own, refused);
        }
    }

    /**
     * HerdDB makes the index over any rows. It refuses those without a value in its first column from then on: they could not be changed or
     * deleted. No restore could load these, nor rows with one value.
     */
    private static void refuseRows(TableManager manager, Index index, Transaction own, String refused) {
        Table table = manager.getTable();
        AtomicReference<Bytes> without = new AtomicReference<>();
        LongStream.Builder hashes = LongStream.builder();
        forEachRow(manager, own, row -> {
            Bytes value = valueOf(row, table, index);
            if (value == null) {
                without.set(row.key);
            } else {
                hashes.add(hash(value));
            }
        });
        if (without.get() != null) {
            throw new StatementExecutionException(refused + "the row with the key "
                    + RecordSerializer.deserializePrimaryKey(without.get(), table) + " has no value in the column " + index.columnNames[0]
                    + ": give it one, or delete it, and others like it");
        }
        Set<Long> twice = someThatComeTwice(hashes.build().toArray());
        if (!twice.isEmpty()) {
            refuseEqualRows(manager, index, own, twice, refused);
        }
    }

    private static void refuseEqualRows(TableManager manager, Index index, Transaction own, Set<Long> twice, String refused) {
        Table table = manager.getTable();
        Map<Bytes, Bytes> keys = new HashMap<>();
        AtomicReference<String> equal = new AtomicReference<>();
        forEachRow(manager, own, row -> {
            Bytes value = valueOf(row, table, index);
            Bytes other = value != null && twice.contains(hash(value)) ? keys.putIfAbsent(value, row.key) : null;
            if (other != null) {
                equal.set(RecordSerializer.deserializePrimaryKey(other, table) + " and "
                        + RecordSerializer.deserializePrimaryKey(row.key, table));
            }
        });
        if (equal.get() != null) {
            throw new StatementExecutionException(refused + "the rows with the keys " + equal.get() + " have one value of "
                    + String.join(", ", index.columnNames) + ": change or delete one of them, and others like them");
        }
    }

    /** Also the transaction's own, which HerdDB does not read for an index. */
    private static void forEachRow(TableManager manager, Transaction own, Consumer<Record> look) {
        manager.scanForIndexRebuild(look);
        if (own != null) {
            own.newRecords.getOrDefault(manager.getTable().name, Map.of()).values().forEach(look);
        }
    }

    /** As the index has it; null for a row that it has not, since its first column is null. */
    private static Bytes valueOf(Record row, Table table, Index index) {
        return RecordSerializer.serializeIndexKey(row.getDataAccessor(table), index, index.columnNames);
    }

    private static long hash(Bytes value) {
        return XXHash64Utils.hash(value.getBuffer(), value.getOffset(), value.getLength());
    }

    /** 1000 at most: two values seldom have one hash, so one of them is that of equal rows. */
    private static Set<Long> someThatComeTwice(long[] hashes) {
        Arrays.sort(hashes);
        return IntStream.range(1, hashes.length).filter(i -> hashes[i] == hashes[i - 1]).mapToObj(i -> hashes[i]).limit(1000)
                .collect(Collectors.toSet());
    }

    /** HerdDB reads for an index without the transaction, so it would wait for its own lock. Nobody would hold the values of its rows. */
    private static boolean locksRows(Transaction own, String table) {
        Map<?, ?> locked = own == null ? null : own.locks.get(table);
        return locked != null && !locked.isEmpty();
    }

    static boolean makesTheTable(Transaction own, Index index) {
        return own != null && own.isNewTable(index.table);
    }

    /** HerdDB goes by names: the second index would replace the first, which no row is compared by. */
    static void refuseTwins(Table table, List<Index> indexes) {
        Set<String> names = new HashSet<>();
        for (Index index : indexes) {
            if (!names.add(index.name)) {
                throw new StatementExecutionException("there can't be two indexes " + index.name + " of table " + table.name
                        + ", and nothing was changed: give one another name");
            }
        }
    }

    /**
     * HerdDB notes a transaction's locks by the names of tables and of unique indexes. What it locked by one name would be unlocked once by a
     * table and once by an index: the COMMIT would end the log.
     */
    static void refuseNameOfATable(TableSpaceManager tablespace, Index index, String table) {
        if (!index.unique || uniqueIndex(tablespace, index.name) != null) {
            return; // HerdDB says so
        }
        if (index.name.equals(table) || tablespace.getTableManager(index.name) != null) {
            throw new StatementExecutionException("the unique index " + index.name + " of table " + table
                    + " can't have the name of a table in tablespace " + tablespace.getTableSpaceName()
                    + ", and nothing was changed: give it another name");
        }
        if (TableRefusals.isInATransaction(tablespace, index.name, TransactionContext.NOTRANSACTION_ID)) {
            throw new StatementExecutionException("there can't be a unique index " + index.name + " in tablespace "
                    + tablespace.getTableSpaceName() + " yet, and nothing was changed: a transaction is open on an earlier table or index "
                    + index.name + ", which was dropped; commit it or roll it back first");
        }
    }

    static AbstractIndexManager uniqueIndex(TableSpaceManager tablespace, String name) {
        return tablespace.getAllTablesForPlanner().stream().map(table -> tablespace.getIndexesOnTable(table.name)).filter(Objects::nonNull)
                .map(indexes -> indexes.get(name)).filter(index -> index != null && index.isUnique()).findAny().orElse(null);
    }
}
