package io.herdkeeper.node.tables;

import io.herdkeeper.node.digest.RowDigest;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/**
 * Writes the tables of a tablespace as a stream of frames, in which a part that is missing is noticed.
 *
 * <p>A frame is {@code u8 kind, u32 length, payload}; numbers are big-endian, texts UTF-8. In this order:
 *
 * <ul>
 * <li>{@code 'P'}, once: {@code u32 version (1), i64 ledger, i64 entry, uuid of the tablespace}: what follows is exactly what was committed
 *     up to that entry, and nothing was open there.
 * <li>{@code 'T'}, for each table: {@code i64 the next value of its auto-increment key}, and its definition as the log's entry CREATE_TABLE
 *     has it. Behind it {@code 'I'} for each of its indexes: {@code u8 1} if it can be used, {@code 0} if a transaction that was rolled back
 *     left it, and its definition as the log's entry CREATE_INDEX has it. Then any number of {@code 'R'}: {@code u32 n, n times u32} length
 *     of a key, {@code n times u32} length of a value, the keys, the values, as they are stored. Last {@code 'E'}: {@code i64 rows} and the
 *     16 bytes of the {@link RowDigest} of the table's rows.
 * <li>{@code 'Z'}, last of all: {@code u32} number of tables, {@code i64} number of all rows, and the 16 bytes of the {@link RowDigest} of
 *     all frames P, T and I, as rows whose key is the kind's byte and whose value is the payload.
 * <li>{@code 'F'} in the place of any frame but the first: why nothing more comes. Without Z the stream is worth nothing.
 * </ul>
 *
 * <p>Not thread-safe.
 */
public final class TablesWriter {

    private static final int VERSION = 1;
    private static final int MOST_ROWS = 16_384;
    private static final int MOST_BYTES = 1 << 20;

    private final DataOutputStream out;
    private final RowDigest descriptions = new RowDigest();
    private final ByteArrayOutputStream keys = new ByteArrayOutputStream();
    private final ByteArrayOutputStream values = new ByteArrayOutputStream();
    private final int[] keyLengths = new int[MOST_ROWS];
    private final int[] valueLengths = new int[MOST_ROWS];
    private int held;
    private RowDigest rows = new RowDigest();
    private int tables;
    private long allRows;

    public TablesWriter(OutputStream out) {
        this.out = new DataOutputStream(out);
    }

    /** Begins: of which tablespace, and after which entry. */
    public void position(long ledgerId, long entryId, String tableSpaceUuid) throws IOException {
        byte[] uuid = tableSpaceUuid.getBytes(StandardCharsets.UTF_8);
        ByteBuffer payload = ByteBuffer.allocate(20 + uuid.length).putInt(VERSION).putLong(ledgerId).putLong(entryId).put(uuid);
        described('P', payload);
    }

    /** Begins a table. */
    public void table(long nextAutoIncrement, byte[] definition) throws IOException {
        described('T', ByteBuffer.allocate(8 + definition.length).putLong(nextAutoIncrement).put(definition));
        tables++;
    }

    /** An index of the table that was begun last. */
    public void index(boolean available, byte[] definition) throws IOException {
        described('I', ByteBuffer.allocate(1 + definition.length).put((byte) (available ? 1 : 0)).put(definition));
    }

    /** A row of the table that was begun last; what is given is copied. */
    public void row(ByteBuffer key, ByteBuffer value) throws IOException {
        if (held == MOST_ROWS || held > 0 && keys.size() + values.size() + key.remaining() + value.remaining() > MOST_BYTES) {
            flushRows();
        }
        keyLengths[held] = key.remaining();
        valueLengths[held] = value.remaining();
        held++;
        rows.add(key.duplicate(), value.duplicate());
        keys.write(key.array(), key.arrayOffset() + key.position(), key.remaining());
        values.write(value.array(), value.arrayOffset() + value.position(), value.remaining());
    }

    /** Ends the table that was begun last. */
    public void endTable() throws IOException {
        if (held > 0) {
            flushRows();
        }
        frame('E', ByteBuffer.allocate(24).putLong(rows.rows()).put(bytes(rows)).array());
        allRows += rows.rows();
        rows = new RowDigest();
    }

    /** Ends all: only what has this is whole. */
    public void end() throws IOException {
        frame('Z', ByteBuffer.allocate(28).putInt(tables).putLong(allRows).put(bytes(descriptions)).array());
        out.flush();
    }

    /** Ends it before its end. */
    public void failure(String why) throws IOException {
        frame('F', why.getBytes(StandardCharsets.UTF_8));
        out.flush();
    }

    private void described(char kind, ByteBuffer payload) throws IOException {
        descriptions.add(ByteBuffer.wrap(new byte[]{(byte) kind}), ByteBuffer.wrap(payload.array()));
        frame(kind, payload.array());
    }

    private void flushRows() throws IOException {
        out.writeByte('R');
        out.writeInt(Math.addExact(4 + 8 * held, Math.addExact(keys.size(), values.size())));
        ByteBuffer lengths = ByteBuffer.allocate(4 + 8 * held).putInt(held);
        for (int i = 0; i < held; i++) {
            lengths.putInt(keyLengths[i]);
        }
        for (int i = 0; i < held; i++) {
            lengths.putInt(valueLengths[i]);
        }
        out.write(lengths.array());
        keys.writeTo(out);
        values.writeTo(out);
        keys.reset();
        values.reset();
        held = 0;
    }

    private void frame(char kind, byte[] payload) throws IOException {
        out.writeByte(kind);
        out.writeInt(payload.length);
        out.write(payload);
    }

    private static byte[] bytes(RowDigest digest) {
        return HexFormat.of().parseHex(digest.hex());
    }
}
