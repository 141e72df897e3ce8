package io.herdkeeper.node.log;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class IdlePauseTest {

    private final IdlePause pause = new IdlePause();

    @Test
    void anIdleFollowerAsksEverLessOften() {
        assertEquals(List.of(20L, 40L, 80L, 160L, 160L), next(5));
    }

    @Test
    void anEntryMakesAFollowerAskOftenAgain() {
        next(5);
        pause.begin();
        assertEquals(List.of(20L, 40L), next(2));
    }

    private List<Long> next(int count) {
        return LongStream.generate(pause::next).limit(count).boxed().toList();
    }
}
