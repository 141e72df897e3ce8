package io.herdkeeper.node.logging;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Logger;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** What a node logs between SIGTERM and its end, with the logging that its image sets. */
class LogOfTheEndTest {

    /** Ends itself, and logs once the hook of the JDK's own logging has ended. */
    public static final class Stopping {

        private Stopping() {
        }

        public static void main(String[] arguments) {
            Logger logger = Logger.getLogger("stopping");
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                Thread.getAllStackTraces().keySet().stream().filter(hook -> hook.getClass().getName().startsWith("java.util.logging")).forEach(hook -> {
                    try {
                        hook.join();
                    } catch (InterruptedException error) {
                        throw new IllegalStateException(error);
                    }
                });
                logger.info("leads no tablespace any more");
            }));
            logger.info("asked to stop");
            System.exit(0);
        }
    }

    @Test
    void isOnTheConsole() throws Exception {
        List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp",
                System.getProperty("java.class.path"), "-Djava.util.logging.config.file=" + Path.of("logging.properties").toAbsolutePath()));
        Pattern.compile("-Djava\\.util\\.logging\\.manager=\\S+").matcher(Files.readString(Path.of("entrypoint.sh"))).results()
                .forEach(found -> command.add(found.group()));
        command.add(Stopping.class.getName());
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String told = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        process.waitFor();
        assertTrue(told.contains("asked to stop"), told);
        assertTrue(told.contains("leads no tablespace any more"), told);
    }
}
