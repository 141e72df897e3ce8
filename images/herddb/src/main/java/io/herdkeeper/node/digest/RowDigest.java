package io.herdkeeper.node.digest;

import herddb.model.Record;
import java.nio.ByteBuffer;
import net.openhft.hashing.LongTupleHashFunction;

/**
 * An order-free digest of rows: the sum, modulo 2^128, of XXH3-128 over each row's stored key and value.
 *
 * <p>A row is hashed as {@code u32be length(key), key, u32be length(value), value}, with seed 0. Two nodes that hold the
 * same rows get the same digest in whatever order they scan. Several workers can add rows and merge their digests, as the
 * Spark checkpoint does. The number of rows belongs to the digest: compare both.
 *
 * <p>Not thread-safe.
 */
public final class RowDigest {

    /** The function is thread-safe; it writes two longs, the low half first. */
    private static final LongTupleHashFunction XXH3_128 = LongTupleHashFunction.xx128();

    private final long[] hash = XXH3_128.newResultArray();
    private ByteBuffer row = ByteBuffer.allocate(4096);
    private long rows;
    private long low;
    private long high;

    /** Adds one row as it is stored. */
    public void add(Record stored) {
        add(StoredRows.buffer(stored.key), StoredRows.buffer(stored.value));
    }

    /** Adds one row. */
    public void add(ByteBuffer key, ByteBuffer value) {
        int length = Math.addExact(8, Math.addExact(key.remaining(), value.remaining()));
        if (row.capacity() < length) {
            row = ByteBuffer.allocate(Math.max(length, 2 * row.capacity()));
        }
        row.clear();
        row.putInt(key.remaining()).put(key).putInt(value.remaining()).put(value);
        XXH3_128.hashBytes(row.array(), 0, length, hash);
        rows++;
        long sum = low + hash[0];
        long carry = Long.compareUnsigned(sum, low) < 0 ? 1 : 0;
        low = sum;
        high += hash[1] + carry;
    }

    /** How many rows were added. */
    public long rows() {
        return rows;
    }

    /** The sum as 32 lower-case hexadecimal digits, most significant first. */
    public String hex() {
        return String.format("%016x%016x", high, low);
    }
}
