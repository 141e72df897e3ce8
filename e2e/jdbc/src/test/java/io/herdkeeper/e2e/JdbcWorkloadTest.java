package io.herdkeeper.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The clients over HerdDB's own driver, against a database inside this process. */
class JdbcWorkloadTest {

    private static final String URL = "jdbc:herddb:local:workload";

    @TempDir
    Path folder;

    @Test
    @Timeout(120)
    void whatWasAcknowledgedIsThereAndWhatWasRolledBackIsNot() throws Exception {
        try (Connection connection = DriverManager.getConnection(URL, "sa", "hdb"); Statement statement = connection.createStatement()) {
            statement.executeUpdate("CREATE TABLE checker_set (`id` long, `operation` string, PRIMARY KEY (`id`))");
            statement.executeUpdate("CREATE TABLE checker_register (`register` int, `value` long, PRIMARY KEY (`register`))");
            statement.executeUpdate("INSERT INTO checker_register (`register`, `value`) VALUES (7, 0)");
            Path file = folder.resolve("history");
            CountDownLatch stop = new CountDownLatch(1);
            Thread run = new Thread(() -> runQuietly(file, stop));
            run.start();
            while (!Files.exists(file) || lines(file, "jdbc-adder-3", "\"number\": 40").size() < 2) {
                TimeUnit.MILLISECONDS.sleep(20);
            }
            stop.countDown();
            run.join();

            long rolledBack = lines(file, "\"phase\": \"fail\"", "rolled back by the client").size();
            assertTrue(rolledBack >= 2, "the 16th and the 32nd");
            assertEquals(rolledBack, lines(file, "\"phase\": \"fail\"").size());
            assertEquals(0, lines(file, "\"phase\": \"unknown\"").size());
            // of each four operations two have one row, one has three and one has five; the last of 16 is one of five
            long added = lines(file, "\"kind\": \"add\"", "\"phase\": \"ok\"").stream().mapToLong(JdbcWorkloadTest::rowsOf).sum();
            assertEquals(added, number(statement, "SELECT COUNT(*) FROM checker_set"));
            assertEquals(0, number(statement, "SELECT COUNT(*) FROM checker_set WHERE `operation` = ''"));
            long written = lines(file, "\"kind\": \"write\"", "\"phase\": \"ok\"").size();
            assertEquals(written, number(statement, "SELECT `value` FROM checker_register"));
            assertTrue(lines(file, "\"kind\": \"read\"", "\"values\": {\"7\": ", "\"leader\": \"", "\"ledger\": ").size() > 0);
        }
    }

    private static void runQuietly(Path file, CountDownLatch stop) {
        try {
            Map<String, String> environment = Map.of("HERDDB_url", URL, "HERDDB_user", "sa", "HERDDB_password", "hdb", "HERDDB_database", "herd");
            JdbcWorkload.run(new String[] {file.toString(), "3", "2", "7", "1", "1"}, environment, stop);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static long rowsOf(String line) {
        int number = Integer.parseInt(line.replaceAll(".*\"number\": (\\d+),.*", "$1"));
        return new int[] {1, 3, 1, 5}[number % 4];
    }

    private static List<String> lines(Path file, String... parts) throws Exception {
        return Files.readAllLines(file).stream().filter(line -> List.of(parts).stream().allMatch(line::contains)).toList();
    }

    private static long number(Statement statement, String sql) throws Exception {
        try (ResultSet rows = statement.executeQuery(sql)) {
            rows.next();
            return rows.getLong(1);
        }
    }
}
