package io.herdkeeper.node.digest;

import herddb.core.AbstractTableManager;
import herddb.core.TableSpaceManager;
import herddb.model.Table;
import herddb.utils.Bytes;
import java.nio.ByteBuffer;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;

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

    /** A key or a value, not copied. */
    public static ByteBuffer buffer(Bytes bytes) {
        return ByteBuffer.wrap(bytes.getBuffer(), bytes.getOffset(), bytes.getLength());
    }
}
