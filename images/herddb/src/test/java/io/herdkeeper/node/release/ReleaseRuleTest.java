package io.herdkeeper.node.release;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.cluster.LedgersInfo;
import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.release.ReleaseRule.Decision;
import io.herdkeeper.node.release.ReleaseRule.Need;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** Ledgers 1, 2, 3 and so on, opened at the given times; what ended before 100 is old enough, and 1000 is now. */
class ReleaseRuleTest {

    private static final long NOW = 1000;
    private static final long RETENTION = 900;

    @Test
    void aLedgersAgeIsThatOfItsEnd() {
        assertEquals(List.of(), released(opened(0, 100, 200)), "ledger 1 was opened long ago, and ended at 100");
        assertEquals(List.of(1L), released(opened(0, 99, 200)));
        assertEquals(List.of(1L, 2L), released(opened(0, 1, 2)), "ledger 3 is written");
        assertEquals(List.of(), released(opened(0)));
        assertEquals(List.of(), released(opened()));
    }

    @Test
    void aLedgerBehindOneThatIsKeptIsKept() {
        assertEquals(List.of(1L), released(opened(0, 10, 150, 20, 30)), "the clock of whoever opened ledger 4 was behind");
        assertEquals(List.of(1L), released(opened(0, 20, 150, 151, 30, 31, 32)));
    }

    @Test
    void aClockThatIsFarAheadDoesNotHaveTheLogKept() {
        assertEquals(List.of(1L, 2L, 3L), released(opened(0, 10, 1_000_000, 20, 150)), "that of whoever opened ledger 3");
        assertEquals(List.of(1L), released(opened(0, 10, 1_000_000, 150, 160)), "ledger 2 ended by 150 at the latest");
        assertEquals(List.of(), released(opened(0, 1_000_000)), "when ledger 1 ended is not known");
    }

    @Test
    void nothingIsDroppedThatSomebodyNeeds() {
        LedgersInfo ledgers = opened(0, 1, 2, 3, 4);
        assertEquals(List.of(1L, 2L), released(ledgers, from("replica n1", 3)));
        assertEquals(List.of(1L), released(ledgers, from("replica n1", 3), from("checkpoint", 2)));
        assertEquals(List.of(), released(ledgers, from("replica n1", 3), from("checkpoint", 1)));
        assertEquals(List.of(), released(ledgers, new Need("replica n1", Optional.of(LogSequenceNumber.START_OF_TIME))));
        assertEquals(List.of(1L, 2L, 3L, 4L), released(ledgers, from("replica n1", 5)));
    }

    @Test
    void afterALongTimeTheOldestGoAFewAtATime() {
        LedgersInfo ledgers = opened(LongStream.range(0, 3 * ReleaseRule.MOST_AT_ONCE).toArray());
        Decision decision = ReleaseRule.decide(ledgers, NOW, RETENTION, List.of());
        assertEquals(ledgers.getActiveLedgers().subList(0, ReleaseRule.MOST_AT_ONCE), decision.released());
        assertEquals(List.of(), decision.kept(), "nobody needs the others: they go next time");
    }

    @Test
    void ofLedgersThatComeFasterThanAFewAtATimeNoMoreStayThanFourTimesWhatComes() {
        int inflow = 3 * ReleaseRule.MOST_AT_ONCE;
        int waiting = 0;
        for (int look = 0; look < 100; look++) {
            waiting += inflow;
            waiting -= released(opened(new long[waiting + 1])).size();
        }
        assertTrue(waiting <= 4 * inflow, waiting + " wait");
    }

    @Test
    void whatIsNotKnownIsNeeded() {
        assertEquals(List.of(), released(opened(0, 1, 2), from("replica n1", 3), new Need("checkpoint", Optional.empty())));
    }

    @Test
    void whatIsKeptThoughItIsOldEnoughIsToldWithWhoNeedsIt() {
        Decision decision = ReleaseRule.decide(opened(0, 1, 2, 3, 200), NOW, RETENTION,
                List.of(from("replica n2", 2), from("replica n1", 2), from("checkpoint", 3)));
        assertEquals(List.of(1L), decision.released());
        assertEquals(List.of(2L, 3L), decision.kept());
        assertEquals(2, decision.keptSince(), "when ledger 2 ended");
        assertEquals(List.of("replica n1", "replica n2"), decision.keptFor());
        assertEquals(List.of(), ReleaseRule.decide(opened(0, 200), NOW, RETENTION, List.of(from("replica n1", 1))).kept());
    }

    private static List<Long> released(LedgersInfo ledgers, Need... needs) {
        return ReleaseRule.decide(ledgers, NOW, RETENTION, List.of(needs)).released();
    }

    private static Need from(String who, long ledger) {
        return new Need(who, Optional.of(new LogSequenceNumber(ledger, 7)));
    }

    private static LedgersInfo opened(long... times) {
        LedgersInfo ledgers = new LedgersInfo();
        List<Long> ids = new ArrayList<>();
        List<Long> opened = new ArrayList<>();
        for (long time : times) {
            ids.add((long) ids.size() + 1);
            opened.add(time);
        }
        ledgers.setActiveLedgers(ids);
        ledgers.setLedgersTimestamps(opened);
        return ledgers;
    }
}
