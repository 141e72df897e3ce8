package io.herdkeeper.node.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import herddb.log.LogNotAvailableException;
import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.status.Position;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

class FullChecksTest {

    private static final FullCheck BEGUN = FullCheck.begun(1_000, new Position(7, -1));

    @Test
    void aTableIsCheckedOnceTheBookiesHaveItsEntry() {
        FullCheck check = FullChecks.confirmed(BEGUN, "t", 40, CompletableFuture.completedFuture(new LogSequenceNumber(7, 3)));
        assertEquals(new FullCheck(1_000, null, new Position(7, -1), new Position(7, 3), Map.of("t", 40L), Map.of(), 40, null), check);
    }

    @Test
    void aTableWhoseEntryCouldNotBeWrittenEndsTheCheckAndOnlyItsScanHasStoppedWrites() {
        FullCheck check = FullChecks.confirmed(BEGUN, "t", 40, CompletableFuture.failedFuture(new LogNotAvailableException("fenced")));
        assertEquals("table t: its entry was not written: herddb.log.LogNotAvailableException: fenced", check.error());
        assertEquals(40, check.writesStoppedMillis());
        assertEquals(Map.of(), check.tables());
        assertNull(check.until());
    }
}
