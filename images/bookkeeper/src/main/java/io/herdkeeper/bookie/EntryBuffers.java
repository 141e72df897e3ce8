package io.herdkeeper.bookie;

import io.netty.buffer.AbstractByteBufAllocator;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;

/**
 * Refuses buffers for entries whose damaged length says that they are larger than any entry. BookKeeper 4.18 ({@code DefaultEntryLogger}) only
 * warns of such a length: the bookie would run out of memory and end, at each read of the entry.
 */
final class EntryBuffers extends AbstractByteBufAllocator {

    private static final int MOST_BYTES = 64 << 20;

    private final ByteBufAllocator buffers;
    private final int most;

    EntryBuffers(ByteBufAllocator buffers, int longestFrame) {
        this.buffers = buffers;
        most = Math.max(longestFrame, MOST_BYTES);
    }

    /** For an entry that is read. */
    @Override
    public ByteBuf buffer(int size, int limit) {
        if (size > most) {
            throw new IllegalArgumentException("an entry of " + size + " bytes: its length is damaged");
        }
        return buffers.buffer(size, limit);
    }

    /** For what is written, and for scans, which let their buffer grow. */
    @Override
    protected ByteBuf newDirectBuffer(int size, int limit) {
        return buffers.directBuffer(size, Math.min(limit, Math.max(size, most)));
    }

    @Override
    protected ByteBuf newHeapBuffer(int size, int limit) {
        return buffers.heapBuffer(size, limit);
    }

    @Override
    public boolean isDirectBufferPooled() {
        return buffers.isDirectBufferPooled();
    }
}
