package io.herdkeeper.node.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import herddb.data.consistency.TableChecksum;
import herddb.log.LogEntry;
import herddb.log.LogEntryFactory;
import herddb.log.LogNotAvailableException;
import herddb.log.LogSequenceNumber;
import herddb.model.ColumnTypes;
import herddb.model.Table;
import herddb.utils.Bytes;
import io.herdkeeper.node.log.Position;
import io.herdkeeper.node.refusals.OrderRefusedException;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

class FullChecksTest {

    private static final Table TABLE = Table.builder().tablespace("app").name("t").uuid("a-uuid")
            .column("k", ColumnTypes.INTEGER).primaryKey("k").build();
    private static final CheckEntry ENTRY =
            new CheckEntry("a-check", "n0", "a-uuid", 3, Bytes.from_int(-7), Bytes.from_array(new byte[0]), 12, "0a");

    @Test
    void anEntryIsWrittenOnceTheBookiesHaveIt() throws Exception {
        assertEquals(new Position(7, 3), FullChecks.written(TABLE, CompletableFuture.completedFuture(new LogSequenceNumber(7, 3))));
    }

    @Test
    void anEntryThatCouldNotBeWrittenEndsTheCheckWithTheReason() {
        OrderRefusedException error = assertThrows(OrderRefusedException.class,
                () -> FullChecks.written(TABLE, CompletableFuture.failedFuture(new LogNotAvailableException("fenced"))));
        assertEquals("table t: its entry was not written: herddb.log.LogNotAvailableException: fenced", error.getMessage());
    }

    @Test
    void whatALeaderWritesIsReadByItsFollowers() throws Exception {
        for (CheckEntry entry : new CheckEntry[]{ENTRY, new CheckEntry("a-check", "n0", "a-uuid", 0, null, null, 0, "00")}) {
            LogEntry logged = LogEntry.deserialize(entry.of(TABLE).serialize());
            assertEquals("t", logged.tableName);
            assertEquals(entry, CheckEntry.read(logged));
        }
    }

    @Test
    void herdDbsOwnCodeCanNotReadItAndGoesOn() {
        // TableSpaceManager.apply catches this exception, and no other one
        assertThrows(JsonProcessingException.class,
                () -> new ObjectMapper().readValue(ENTRY.of(TABLE).value.to_array(), TableChecksum.class));
    }

    @Test
    void whatAnotherProgramWroteIsNoEntryOfThisOne() throws Exception {
        byte[] herdDbs = new ObjectMapper().writeValueAsBytes(new TableChecksum());
        byte[] newer = "{\"herdkeeperCheck\":2}".getBytes();
        byte[] broken = "{\"herdkeeperCheck\":1,\"check\":\"a\"}".getBytes();
        for (byte[] content : new byte[][]{herdDbs, newer, broken, {1, 2}, {}}) {
            assertNull(CheckEntry.read(LogEntryFactory.dataConsistency("t", Bytes.from_array(content))));
        }
    }
}
