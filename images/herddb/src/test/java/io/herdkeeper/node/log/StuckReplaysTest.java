package io.herdkeeper.node.log;

import static org.junit.jupiter.api.Assertions.assertEquals;

import herddb.log.LogEntry;
import herddb.log.LogEntryFactory;
import herddb.log.LogSequenceNumber;
import herddb.storage.DataStorageManagerException;
import java.io.EOFException;
import java.io.IOException;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class StuckReplaysTest {

    @ParameterizedTest
    @CsvSource({"NO_SPACE, true", "TOO_SHORT, false", "REFUSED, false"})
    void aDiskThatRefusesAWriteIsToldApartFromAnEntryThatCanNotBeApplied(String error, boolean disk) {
        StuckReplays replays = new StuckReplays();
        LogEntry entry = LogEntryFactory.noop();
        LogSequenceNumber position = new LogSequenceNumber(7, 41);
        for (int tries = 0; tries < 2; tries++) {
            replays.failed("a-uuid", position, entry, errorNamed(error));
        }
        assertEquals(disk, replays.of("a-uuid").disk());
    }

    private static Exception errorNamed(String name) {
        return switch (name) {
            case "NO_SPACE" -> new DataStorageManagerException(new IOException("No space left on device"));
            case "TOO_SHORT" -> new DataStorageManagerException(new EOFException());
            default -> new DataStorageManagerException("at least one transaction is pending on it");
        };
    }
}
