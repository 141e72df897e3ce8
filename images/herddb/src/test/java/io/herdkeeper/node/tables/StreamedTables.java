package io.herdkeeper.node.tables;

import io.herdkeeper.node.digest.RowDigest;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** A stream of tables as whoever asked for it has it: read as {@link TablesWriter} says, without a check. */
public final class StreamedTables {

    /** A table; {@code counted} is what its node says of its rows, {@code rows} what came. */
    public record StreamedTable(long nextAutoIncrement, byte[] definition, List<byte[]> indexes, RowDigest rows, String counted) {
    }

    private final List<StreamedTable> tables = new ArrayList<>();
    private long ledgerId;
    private long entryId;
    private String uuid;
    private String failure;
    private boolean whole;

    private StreamedTables() {
    }

    /** Reads up to the last frame. */
    public static StreamedTables read(InputStream stream) throws IOException {
        StreamedTables read = new StreamedTables();
        DataInputStream in = new DataInputStream(stream);
        while (!read.whole && read.failure == null) {
            char kind = (char) in.readByte();
            byte[] payload = new byte[in.readInt()];
            in.readFully(payload);
            read.take(kind, ByteBuffer.wrap(payload));
        }
        return read;
    }

    private void take(char kind, ByteBuffer payload) {
        switch (kind) {
            case 'P' -> {
                payload.getInt();
                ledgerId = payload.getLong();
                entryId = payload.getLong();
                uuid = StandardCharsets.UTF_8.decode(payload).toString();
            }
            case 'T' -> tables.add(new StreamedTable(payload.getLong(), rest(payload), new ArrayList<>(), new RowDigest(), ""));
            case 'I' -> last().indexes().add(rest(payload));
            case 'R' -> rows(payload);
            case 'E' -> {
                StreamedTable table = tables.remove(tables.size() - 1);
                String counted = String.format("%d %016x%016x", payload.getLong(), payload.getLong(), payload.getLong());
                tables.add(new StreamedTable(table.nextAutoIncrement(), table.definition(), table.indexes(), table.rows(), counted));
            }
            case 'F' -> failure = StandardCharsets.UTF_8.decode(payload).toString();
            case 'Z' -> whole = true;
            default -> throw new IllegalStateException("a frame " + kind);
        }
    }

    private void rows(ByteBuffer payload) {
        int count = payload.getInt();
        int[] lengths = new int[2 * count];
        for (int i = 0; i < lengths.length; i++) {
            lengths[i] = payload.getInt();
        }
        int key = payload.position();
        int value = key + Arrays.stream(lengths, 0, count).sum();
        for (int i = 0; i < count; i++) {
            last().rows().add(payload.slice(key, lengths[i]), payload.slice(value, lengths[count + i]));
            key += lengths[i];
            value += lengths[count + i];
        }
    }

    private StreamedTable last() {
        return tables.get(tables.size() - 1);
    }

    private static byte[] rest(ByteBuffer payload) {
        byte[] rest = new byte[payload.remaining()];
        payload.get(rest);
        return rest;
    }

    public List<StreamedTable> tables() {
        return tables;
    }

    public long ledgerId() {
        return ledgerId;
    }

    public long entryId() {
        return entryId;
    }

    public String uuid() {
        return uuid;
    }

    /** Why it ended before its end; null when it did not. */
    public String failure() {
        return failure;
    }

    public boolean isWhole() {
        return whole;
    }
}
