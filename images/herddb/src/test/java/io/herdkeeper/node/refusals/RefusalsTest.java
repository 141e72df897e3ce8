package io.herdkeeper.node.refusals;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class RefusalsTest {

    @Test
    void ofAFloodTenLinesAMinuteAreLoggedWithTheNumberOfTheOthers() {
        Refusals.Log log = new Refusals.Log();
        List<Long> logged = new ArrayList<>();
        for (int millis = 0; millis < 120_000; millis += 100) {
            long unlogged = log.counted(Duration.ofMillis(millis).toNanos());
            if (unlogged >= 0) {
                logged.add(unlogged);
            }
        }
        assertEquals(20, logged.size());
        assertEquals(590, logged.get(10));
        assertEquals(590, logged.stream().mapToLong(Long::longValue).sum());
        assertEquals(1200, log.count());
    }
}
