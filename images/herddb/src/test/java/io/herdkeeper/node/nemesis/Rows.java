package io.herdkeeper.node.nemesis;

import herddb.codec.RecordSerializer;
import herddb.core.AbstractTableManager;
import herddb.core.TableSpaceManager;
import herddb.utils.Bytes;
import io.herdkeeper.node.digest.RowDigest;
import io.herdkeeper.node.digest.StoredRows;
import java.util.Map;
import java.util.TreeMap;

/** What a node's copy has. */
final class Rows {

    private Rows() {
    }

    /** The rows of the stories' table, as key and value; none while the copy is not there, or goes. */
    static Map<Integer, String> of(NemesisNode node) {
        Map<Integer, String> rows = new TreeMap<>();
        AbstractTableManager table = table(node);
        if (table != null) {
            try {
                table.scanForIndexRebuild(row -> rows.put(Bytes.toInt(row.key.to_array(), 0),
                        String.valueOf(RecordSerializer.toBean(row, table.getTable()).get("v"))));
            } catch (RuntimeException stopping) {
                return Map.of();
            }
        }
        return rows;
    }

    static boolean hasTable(NemesisNode node) {
        return table(node) != null;
    }

    /** Their digest, as the operator compares copies; of a copy that is not there it is another one each time. */
    static String digest(NemesisNode node) {
        RowDigest digest = new RowDigest();
        AbstractTableManager table = table(node);
        if (table == null) {
            return "none of " + node.life().name();
        }
        try {
            table.scanForIndexRebuild(row -> digest.add(StoredRows.buffer(row.key), StoredRows.buffer(row.value)));
        } catch (RuntimeException stopping) {
            return "none of " + node.life().name();
        }
        return digest.rows() + " " + digest.hex();
    }

    private static AbstractTableManager table(NemesisNode node) {
        TableSpaceManager tablespace = node.tablespace();
        return tablespace == null ? null : tablespace.getTableManager("t");
    }
}
