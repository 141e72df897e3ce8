package io.herdkeeper.zookeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.OpCode;
import org.apache.zookeeper.server.Request;
import org.apache.zookeeper.server.persistence.FileTxnSnapLog;
import org.apache.zookeeper.txn.CreateTxn;
import org.apache.zookeeper.txn.TxnHeader;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A disk without a byte left: the kernel's own, at which each write fails. */
class EndingLogTest {

    private static final Path FULL = Path.of("/dev/full");

    @TempDir
    Path folder;

    private final AtomicInteger ends = new AtomicInteger();
    private EndingLog log;

    @BeforeEach
    void aStore() throws IOException {
        File files = folder.toFile();
        log = new EndingLog(new FileTxnSnapLog(files, files), ends::incrementAndGet);
    }

    @Test
    void theProcessEndsOnceATransactionCanNotBeWritten() throws IOException {
        Files.createSymbolicLink(folder.resolve("version-2/log.1"), FULL);
        assertThrows(IOException.class, () -> log.append(creation(1)));
        assertEquals(1, ends.get());
    }

    @Test
    void itGoesOnAsLongAsTheyCan() throws IOException {
        assertTrue(log.append(creation(1)));
        log.commit();
        log.rollLog();
        assertTrue(log.append(creation(2)));
        log.commit();
        assertEquals(0, ends.get());
        assertEquals(2, log.getLastLoggedZxid());
    }

    private static Request creation(long zxid) {
        CreateTxn created = new CreateTxn("/a", new byte[0], Ids.OPEN_ACL_UNSAFE, false, 1);
        return new Request(1, 1, OpCode.create, new TxnHeader(1, 1, zxid, 1, OpCode.create), created, zxid);
    }
}
