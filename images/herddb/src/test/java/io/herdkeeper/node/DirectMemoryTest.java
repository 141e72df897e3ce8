package io.herdkeeper.node;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The direct memory of a node whose every thread has read a file as HerdDB does. */
class DirectMemoryTest {

    private static final int THREADS = 64;
    private static final int PIECE_BYTES = 4 << 20;
    private static final Pattern PROPERTY = Pattern.compile("-Djdk\\.\\S+");

    @Test
    void threadsThatReadFilesInLargePiecesLeaveDirectMemoryForTheNetwork(@TempDir Path folder) throws Exception {
        List<String> command = new ArrayList<>(List.of(ProcessHandle.current().info().command().orElseThrow(),
                "-XX:MaxDirectMemorySize=" + PIECE_BYTES * (THREADS - 16)));
        PROPERTY.matcher(Files.readString(Path.of("entrypoint.sh"))).results().forEach(found -> command.add(found.group()));
        Path file = Files.write(folder.resolve("page"), new byte[PIECE_BYTES]);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), Reader.class.getName(), file.toString()));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        assertEquals("0 of 64 threads failed", new String(process.getInputStream().readAllBytes()).strip());
    }

    /** A program whose threads read a file one after the other, and stay as those of a server do. */
    static final class Reader {

        private Reader() {
        }

        public static void main(String[] arguments) throws InterruptedException {
            AtomicInteger failed = new AtomicInteger();
            CountDownLatch end = new CountDownLatch(1);
            for (int number = 0; number < THREADS; number++) {
                CountDownLatch read = new CountDownLatch(1);
                Thread thread = new Thread(() -> {
                    try (FileChannel channel = FileChannel.open(Path.of(arguments[0]))) {
                        channel.read(ByteBuffer.allocate(PIECE_BYTES));
                    } catch (IOException | OutOfMemoryError error) {
                        failed.incrementAndGet();
                    }
                    read.countDown();
                    await(end);
                });
                thread.start();
                read.await();
            }
            System.out.println(failed + " of " + THREADS + " threads failed");
            end.countDown();
        }

        private static void await(CountDownLatch latch) {
            try {
                latch.await();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
