package io.herdkeeper.node.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.cluster.BookkeeperCommitLog;
import herddb.log.LogNotAvailableException;
import herddb.log.LogSequenceNumber;
import herddb.model.TableSpace;
import io.herdkeeper.node.log.LogBench.Follower;
import io.herdkeeper.node.log.LogBench.Program;
import io.herdkeeper.node.log.StuckReplays.StuckReplay;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.bookkeeper.client.BookKeeper.DigestType;
import org.apache.bookkeeper.client.LedgersWithOwnPasswords;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.client.api.LedgerMetadata.State;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.junit.jupiter.api.Test;

/** A database that was made again beside another BookKeeper cluster: its lists name ledgers that others write there. */
class ForeignLedgersTest {

    private static final byte[] HERDDBS = "herddb".getBytes(StandardCharsets.UTF_8);

    @Test
    void aLeaderNeitherFencesNorReplaysTheLedgerOfAnotherTablespace() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS); LogBench others = new LogBench(Program.OURS)) {
            BookkeeperCommitLog owner = LogBench.lead(others.open("owner"));
            LogBench.write(owner, "theirs");
            long ledger = others.listed().get(0);
            bench.list(others.listed());

            BookkeeperCommitLog log = bench.open("leader");
            String why = assertThrows(LogNotAvailableException.class, () -> LogBench.boot(log)).toString();
            for (String part : List.of("ledger " + ledger, others.uuid(), bench.uuid())) {
                assertTrue(why.contains(part), why);
            }
            assertThrows(LogNotAvailableException.class, () -> LogBench.fenceAndReplay(bench.open("leader that fences at once")));
            assertGoesOn(others, owner);
        }
    }

    @Test
    void theNodeTellsOfItAsOfALogThatCanNotBeReplayedUntilAllListedLedgersAreItsOwn() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS); LogBench others = new LogBench(Program.OURS)) {
            LogBench.lead(others.open("owner"));
            bench.list(others.listed());
            assertThrows(LogNotAvailableException.class, () -> LogBench.boot(bench.open("leader")));
            StuckReplay told = bench.stuck();
            assertEquals(others.listed().get(0), told.ledgerId());
            assertEquals(StuckReplays.FOREIGN_LEDGER, told.entryType());
            assertTrue(told.message().contains(others.uuid()), told.message());
            assertFalse(told.disk());
            assertThrows(LogNotAvailableException.class, () -> LogBench.boot(bench.open("leader")), "it is not tried again at once");
            bench.open("follower").startFollowing(LogSequenceNumber.START_OF_TIME);
            assertNull(bench.stuck());
        }
    }

    @Test
    void aFollowerReadsNothingOfTheLedgerOfAnotherTablespace() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS); LogBench others = new LogBench(Program.OURS)) {
            BookkeeperCommitLog leader = LogBench.lead(bench.open("leader"));
            LogBench.write(leader, "ours");
            leader.close();
            BookkeeperCommitLog owner = LogBench.lead(others.open("owner"));
            LogBench.write(owner, "theirs");
            LogBench.write(owner, "pushes theirs");
            long ledger = others.listed().get(0);
            bench.list(List.of(bench.listed().get(0), ledger));

            try (Follower follower = new Follower(bench.open("follower"))) {
                assertThrows(LogNotAvailableException.class, () -> follower.followTo(new LogSequenceNumber(ledger, 1)));
                assertEquals(List.of("ours"), follower.rows());
            }
            assertEquals(ledger, bench.stuck().ledgerId());
            assertGoesOn(others, owner);
        }
    }

    @Test
    void whoDropsATablespaceFencesNoLedgerOfAnotherOne() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS); LogBench others = new LogBench(Program.OURS)) {
            BookkeeperCommitLog owner = LogBench.lead(others.open("owner"));
            bench.list(others.listed());
            bench.manager().fence(TableSpace.builder().uuid(bench.uuid()).name("app").leader("n0").replica("n0").build());
            assertGoesOn(others, owner);
        }
    }

    @Test
    void aLeaderDropsNoLedgerOfAnotherTablespace() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS); LogBench others = new LogBench(Program.OURS)) {
            BookkeeperCommitLog owner = LogBench.lead(others.open("owner"));
            long ledger = others.listed().get(0);
            BookkeeperCommitLog before = LogBench.lead(bench.open("before"));
            LogSequenceNumber checkpoint = LogBench.write(before, "ours");
            before.close();
            bench.list(List.of(ledger, checkpoint.ledgerId));

            NodeCommitLog leader = (NodeCommitLog) bench.open("leader");
            LogBench.fenceAndReplay(leader, checkpoint);
            leader.startWriting(1);
            assertThrows(LogNotAvailableException.class, () -> leader.dropOldest(ledger));
            assertEquals(ledger, bench.listed().get(0));
            assertNull(bench.stuck(), "it is no reason to stop the leader");
            assertGoesOn(others, owner);
        }
    }

    @Test
    void aLedgerThatNamesNoTablespaceIsNotFencedEither() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            WriteHandle unknown = bench.manager().getBookKeeper().createLedger(1, 1, 1, DigestType.CRC32C, HERDDBS);
            bench.list(List.of(unknown.getId()));
            String why = assertThrows(LogNotAvailableException.class, () -> LogBench.boot(bench.open("leader"))).toString();
            assertTrue(why.contains("names no tablespace"), why);
            assertEquals(State.OPEN, bench.ledgers().get(0).getState());
            unknown.append(HERDDBS);
        }
    }

    /** HerdDB looks at the metadata of all ledgers before it opens one, to print them. What is opened must not depend on that. */
    @Test
    void theClientOfALogItselfOpensNoLedgerOfAnotherTablespace() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS); LogBench others = new LogBench(Program.OURS)) {
            BookkeeperCommitLog owner = LogBench.lead(others.open("owner"));
            long ledger = others.listed().get(0);
            LedgersWithOwnPasswords client = new LedgersWithOwnPasswords(bench.manager().getBookKeeper(), bench.uuid());
            assertThrows(Exception.class, () -> client.openLedger(ledger, DigestType.CRC32C, HERDDBS));
            assertThrows(Exception.class, () -> client.openLedgerNoRecovery(ledger, DigestType.CRC32C, HERDDBS));
            assertThrows(Exception.class, () -> client.fence(ledger).join());
            assertNotNull(new LedgersWithOwnPasswords(bench.manager().getBookKeeper(), others.uuid())
                    .openLedgerNoRecovery(ledger, DigestType.CRC32C, HERDDBS));
            assertGoesOn(others, owner);
        }
    }

    private static void assertGoesOn(LogBench others, BookkeeperCommitLog owner) throws Exception {
        LedgerMetadata ledger = others.ledgers().get(0);
        assertEquals(State.OPEN, ledger.getState());
        LogBench.write(owner, "goes on");
        assertFalse(owner.isFailed());
        assertEquals(1, others.listed().size());
    }
}
