package io.herdkeeper.node.log;

import herddb.log.LogEntry;
import herddb.log.LogEntryType;
import herddb.utils.Bytes;
import io.netty.buffer.ByteBuf;
import java.util.concurrent.CountDownLatch;

/** An entry whose write stands between the choice of its ledger and the ledger, until it is let go. */
final class SlowEntry extends LogEntry {

    final CountDownLatch chosen = new CountDownLatch(1);
    final CountDownLatch goOn = new CountDownLatch(1);

    SlowEntry() {
        super(System.currentTimeMillis(), LogEntryType.INSERT, 1, "t", Bytes.from_string("slow"), Bytes.from_string("slow"));
    }

    @Override
    public ByteBuf serializeAsByteBuf() {
        chosen.countDown();
        try {
            goOn.await();
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
        return super.serializeAsByteBuf();
    }
}
