package io.herdkeeper.node.nemesis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Which cases there are, and how one is repeated. */
class CaseTest {

    @Test
    void isReadFromWhatItPrints() {
        Case two = new Case("leader change", List.of(new Strike("n0 bk add ledger 3 entry 0 #1 after", Fault.LOSE)))
                .with(new Strike("n1 zk setData /ledgers/ID by LedgerList.write #2 before", Fault.KILL));
        assertEquals(two, Case.parse(two.toString()));
    }

    @Test
    void sayWhatIsWrongWithOneThatIsNone() {
        assertTrue(assertThrows(IllegalArgumentException.class, () -> Case.parse("leader change; n0 bk add #1")).getMessage().contains("FAULT"));
        assertTrue(assertThrows(IllegalArgumentException.class, () -> Story.named("a leader")).getMessage().contains("leader change"));
    }

    @Test
    void turnsTogetherTakeEachOnce() {
        List<Case> all = IntStream.range(0, 23).mapToObj(number -> new Case("first boot", List.of(new Strike("point " + number, Fault.STOP)))).toList();
        List<String> taken = new ArrayList<>();
        for (int turn = 0; turn < 5; turn++) {
            Hunt.slice(all, 5, turn).forEach(each -> taken.add(each.toString()));
        }
        assertEquals(23, taken.size());
        assertEquals(23, new TreeSet<>(taken).size());
    }
}
