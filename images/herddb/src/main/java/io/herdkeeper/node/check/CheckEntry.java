package io.herdkeeper.node.check;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import herddb.log.LogEntry;
import herddb.log.LogEntryFactory;
import herddb.model.Table;
import herddb.utils.Bytes;
import java.io.IOException;
import java.io.UncheckedIOException;

/**
 * The log entry that a leader writes for one part of a table: the digest of its committed rows whose keys are after {@code after} and up
 * to {@code upTo}.
 *
 * <p>The entry has HerdDB's type TABLE_CONSISTENCY_CHECK. A follower with HerdDB's own code can't read the content, logs that, and
 * continues.
 *
 * @param check     the check that it belongs to; its parts follow one another
 * @param leader    the node that wrote it
 * @param tableUuid the table, whatever its name is
 * @param part      its number within the table, from 0
 * @param after     the last key of the part before; null in the first one
 * @param upTo      the last key of this part; null in the last one
 * @param rows      how many rows it has
 * @param digest    their {@link io.herdkeeper.node.digest.RowDigest}
 */
record CheckEntry(String check, String leader, String tableUuid, int part, Bytes after, Bytes upTo, long rows, String digest) {

    private static final ObjectMapper JSON = new ObjectMapper();
    /** HerdDB's own content has no such field. */
    private static final String FORMAT = "herdkeeperCheck";
    private static final int VERSION = 1;

    boolean isLast() {
        return upTo == null;
    }

    LogEntry of(Table table) {
        ObjectNode content = JSON.createObjectNode()
                .put(FORMAT, VERSION).put("check", check).put("leader", leader).put("tableUuid", tableUuid).put("part", part)
                .put("after", after == null ? null : after.to_array())
                .put("upTo", upTo == null ? null : upTo.to_array())
                .put("rows", rows).put("digest", digest);
        try {
            return LogEntryFactory.dataConsistency(table.name, Bytes.from_array(JSON.writeValueAsBytes(content)));
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
    }

    /** What an entry of that type has; null when it is not one of this program's, of this version. */
    static CheckEntry read(LogEntry entry) {
        try {
            JsonNode content = JSON.readTree(entry.value.to_array());
            if (content.path(FORMAT).asInt() != VERSION) {
                return null;
            }
            return new CheckEntry(
                    content.required("check").asText(), content.required("leader").asText(), content.required("tableUuid").asText(),
                    content.required("part").asInt(), key(content.required("after")), key(content.required("upTo")),
                    content.required("rows").asLong(), content.required("digest").asText());
        } catch (IOException | IllegalArgumentException unreadable) {
            return null;
        }
    }

    private static Bytes key(JsonNode key) throws IOException {
        return key.isNull() ? null : Bytes.from_array(key.binaryValue());
    }
}
