package io.herdkeeper.node.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PromotionBarsTest {

    @TempDir
    private Path data;

    @Test
    void oneStandsUntilItIsTakenAlsoForTheNextProcessAndForNoOtherTablespace() throws Exception {
        PromotionBars bars = new PromotionBars(data);
        assertFalse(bars.stands("a"));
        bars.put("a", null);
        bars.put("a", null);
        assertTrue(new PromotionBars(data).stands("a"));
        assertNull(bars.until("a"), "nobody told it");
        assertFalse(bars.stands("b"));
        bars.take("a");
        bars.take("a");
        assertFalse(new PromotionBars(data).stands("a"));
        assertNull(bars.until("a"));
    }

    @Test
    void itKeepsTheLatestLsnThatItWasToldAlsoForTheNextProcess() throws Exception {
        PromotionBars bars = new PromotionBars(data);
        bars.put("a", null);
        for (Position told : new Position[]{new Position(4, 9), new Position(4, 12), new Position(3, 99), null}) {
            bars.put("a", told);
        }
        assertEquals(new Position(4, 12), new PromotionBars(data).until("a"));
        assertEquals(List.of("a"), Arrays.asList(data.resolve("barred").toFile().list()));
        bars.take("a");
        bars.put("a", new Position(4, 1));
        assertEquals(new Position(4, 1), bars.until("a"), "what was taken away tells nothing");
    }

    @Test
    void anLsnThatCantBeReadIsNotKnownAndStillBars() throws Exception {
        PromotionBars bars = new PromotionBars(data);
        bars.put("a", new Position(4, 9));
        Files.writeString(data.resolve("barred").resolve("a"), "4,99999999999999999999");
        assertNull(bars.until("a"));
        assertTrue(bars.stands("a"));
    }

    @Test
    void whatTheDiskDoesNotTellBars() throws Exception {
        Files.createFile(data.resolve("barred"));
        assertTrue(new PromotionBars(data).stands("a"), "nothing can be looked up in what is no folder");
    }
}
