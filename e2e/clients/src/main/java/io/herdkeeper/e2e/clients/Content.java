package io.herdkeeper.e2e.clients;

import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/**
 * What an entry or a record holds, so that whoever reads it back can tell whether it is the one that was written there.
 *
 * <p>Layout, big endian: {@code int64} log, {@code int64} sequence, filler, {@code int32} CRC32C of all before it. The filler's length and
 * bytes follow from the sequence, so that entries of another length or of another place are recognised even if their checksum is right.
 */
final class Content {

    private static final int HEAD = 2 * Long.BYTES;
    private static final int SHORTEST_FILLER = 64;
    private static final int FILLERS = 512;

    private Content() {
    }

    /** The bytes of number {@code sequence} in the log {@code log}. */
    static byte[] of(long log, long sequence) {
        int filler = SHORTEST_FILLER + Math.floorMod(sequence * 31, FILLERS);
        ByteBuffer bytes = ByteBuffer.allocate(HEAD + filler + Integer.BYTES).putLong(log).putLong(sequence);
        for (int i = 0; i < filler; i++) {
            bytes.put((byte) (sequence + i));
        }
        return bytes.putInt(checksum(bytes.array(), HEAD + filler)).array();
    }

    /** The sequence that the bytes name; they must be at least as long as their head. */
    static long sequence(byte[] bytes) {
        return ByteBuffer.wrap(bytes).getLong(Long.BYTES);
    }

    /** Why these bytes were not written to this log; null when they were. */
    static String fault(byte[] bytes, long log) {
        if (bytes.length < HEAD + SHORTEST_FILLER + Integer.BYTES) {
            return bytes.length + " bytes are too few";
        }
        ByteBuffer read = ByteBuffer.wrap(bytes);
        if (read.getInt(bytes.length - Integer.BYTES) != checksum(bytes, bytes.length - Integer.BYTES)) {
            return "the checksum is wrong";
        }
        if (read.getLong(0) != log) {
            return "it belongs to log " + read.getLong(0);
        }
        return java.util.Arrays.equals(bytes, of(log, sequence(bytes))) ? null : "the filler is not that of sequence " + sequence(bytes);
    }

    private static int checksum(byte[] bytes, int length) {
        CRC32C checksum = new CRC32C();
        checksum.update(bytes, 0, length);
        return (int) checksum.getValue();
    }
}
