package io.herdkeeper.node.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import herddb.cluster.BookkeeperCommitLog;
import herddb.log.LogNotAvailableException;
import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.log.LogBench.Follower;
import io.herdkeeper.node.log.LogBench.Program;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The bug that HerdDB's followers have since 2019: a ledger change skips as many entries as the old ledger had. */
class FollowerAtLedgerChangeTest {

    private static final int ROWS_IN_FIRST_LEDGER = 10;
    private static final int ROWS_IN_SECOND_LEDGER = 30;

    @Test
    void aFollowerReadsTheNextLedgerFromItsFirstEntry() throws Exception {
        assertEquals(List.of(), rowsThatFollowerLoses(Program.OURS));
    }

    @Test
    void withoutTheCorrectionTheSameStepsLoseRows() throws Exception {
        // The header and ten rows of the first ledger are skipped in the second one, whose header is one of them.
        assertEquals(ROWS_IN_FIRST_LEDGER, rowsThatFollowerLoses(Program.PLAIN_HERDDB).size());
    }

    /** A follower that rests while the leader finishes a ledger and fills the next one beyond the old one's length. */
    private static List<String> rowsThatFollowerLoses(Program program) throws Exception {
        try (LogBench bench = new LogBench(program)) {
            List<String> written = new ArrayList<>();
            BookkeeperCommitLog leader = LogBench.lead(bench.open("leader"));
            LogSequenceNumber endOfFirst = writeRows(leader, "first", ROWS_IN_FIRST_LEDGER, written);
            leader.rollNewLedger();
            try (Follower follower = new Follower(bench.open("follower"))) {
                follower.followTo(endOfFirst);
                assertEquals(endOfFirst, follower.position());
                LogSequenceNumber endOfSecond = writeRows(leader, "second", ROWS_IN_SECOND_LEDGER, written);
                leader.rollNewLedger();
                follower.followTo(endOfSecond);
                assertEquals(endOfSecond, follower.position());
                written.removeAll(follower.rows());
            }
            leader.close();
            return written;
        }
    }

    @Test
    void aGapStopsTheFollowerInsteadOfPassingUnseen() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog leader = LogBench.lead(bench.open("leader"));
            LogSequenceNumber row = LogBench.write(leader, "row");
            leader.rollNewLedger();
            NodeCommitLog log = (NodeCommitLog) bench.open("follower");
            LogContinuity continuity = log.continuity();
            LogSequenceNumber next = new LogSequenceNumber(leader.getLastLedgerId(), 0);

            continuity.check(row, next);
            assertThrows(LogNotAvailableException.class,
                    () -> continuity.check(new LogSequenceNumber(row.ledgerId, row.offset - 1), next));
            assertThrows(LogNotAvailableException.class,
                    () -> continuity.check(row, new LogSequenceNumber(next.ledgerId, 1)));
            assertThrows(LogNotAvailableException.class,
                    () -> continuity.check(row, new LogSequenceNumber(row.ledgerId, row.offset + 2)));
            leader.close();
        }
    }

    /** As to a node whose clients ask two members of ZooKeeper: one shows the list, and the other one, which is behind, the ledgers. */
    @Test
    void aBootDoesNotGoOnBehindALedgerThatLooksOpen() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog old = LogBench.lead(bench.open("old"));
            LogBench.write(old, "first");
            LogBench.write(old, "last");
            List<Long> ledgers = new ArrayList<>(bench.listed());
            bench.list(List.of());
            BookkeeperCommitLog next = LogBench.lead(bench.open("next"));
            LogBench.write(next, "next");
            LogBench.write(next, "after that");
            ledgers.addAll(bench.listed());
            bench.list(ledgers);

            assertThrows(LogNotAvailableException.class, () -> LogBench.boot(bench.open("behind")));
            old.close();
            assertEquals(List.of("first", "last", "next", "after that"), LogBench.boot(bench.open("not behind")));
        }
    }

    private static LogSequenceNumber writeRows(BookkeeperCommitLog leader, String name, int count, List<String> written) {
        LogSequenceNumber last = null;
        for (int i = 0; i < count; i++) {
            last = LogBench.write(leader, name + i);
            written.add(name + i);
        }
        return last;
    }
}
