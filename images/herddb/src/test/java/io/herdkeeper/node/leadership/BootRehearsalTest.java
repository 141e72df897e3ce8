package io.herdkeeper.node.leadership;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A node rehearses the boot of a tablespace with files of its own, of which none is left. */
class BootRehearsalTest {

    @TempDir
    private Path folder;

    @Test
    void eachBootButTheFirstReplaysALogAndNothingIsLeft() throws Exception {
        List<String> told = toldBy("herddb", new BootRehearsal(folder)::once);
        assertEquals(5, told.stream().filter(line -> line.startsWith("Boot success")).count());
        assertEquals(4, told.stream().filter(line -> line.startsWith("Recovery finished")).count());
        try (Stream<Path> left = Files.list(folder)) {
            assertEquals(List.of(), left.toList());
        }
    }

    @Test
    void whatAKilledProcessLeftIsNoHindrance() throws Exception {
        Path left = Files.createDirectories(folder.resolve("boot-rehearsal/metadata"));
        Files.writeString(left.resolve("herd.mtdtblspc"), "half a");
        new BootRehearsal(folder).once();
        assertTrue(Files.notExists(left));
    }

    @Test
    void oneThatCannotBeIsToldAndEndsWell() throws Exception {
        Path noFolder = Files.writeString(folder.resolve("file"), "");
        List<String> told = toldBy(BootRehearsal.class.getName(), new BootRehearsal(noFolder)::tried);
        assertEquals(List.of("the boot of a tablespace was not rehearsed: {0}"), told);
    }

    @FunctionalInterface
    private interface Work {

        void once() throws Exception;
    }

    private static List<String> toldBy(String name, Work work) throws Exception {
        List<String> told = Collections.synchronizedList(new ArrayList<>());
        Handler handler = new Handler() {
            @Override
            public void publish(LogRecord event) {
                told.add(event.getMessage());
            }

            @Override
            public void flush() {
                // nothing is buffered
            }

            @Override
            public void close() {
                // nothing is held
            }
        };
        Logger logger = Logger.getLogger(name);
        logger.addHandler(handler);
        try {
            work.once();
        } finally {
            logger.removeHandler(handler);
        }
        return List.copyOf(told);
    }
}
