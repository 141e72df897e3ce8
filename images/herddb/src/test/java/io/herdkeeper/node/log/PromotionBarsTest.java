package io.herdkeeper.node.log;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PromotionBarsTest {

    @TempDir
    private Path data;

    @Test
    void oneStandsUntilItIsTakenAlsoForTheNextProcessAndForNoOtherTablespace() throws Exception {
        PromotionBars bars = new PromotionBars(data);
        assertFalse(bars.stands("a"));
        bars.put("a");
        bars.put("a");
        assertTrue(new PromotionBars(data).stands("a"));
        assertFalse(bars.stands("b"));
        bars.take("a");
        bars.take("a");
        assertFalse(new PromotionBars(data).stands("a"));
    }

    @Test
    void whatTheDiskDoesNotTellBars() throws Exception {
        Files.createFile(data.resolve("barred"));
        assertTrue(new PromotionBars(data).stands("a"), "nothing can be looked up in what is no folder");
    }
}
