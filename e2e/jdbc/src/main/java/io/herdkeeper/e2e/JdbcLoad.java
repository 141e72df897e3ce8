package io.herdkeeper.e2e;

import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * The peer of a benchmark: loads rows by JDBC batches, a connection per file:
 * {@code JdbcLoad INSERT TYPES ROWS_PER_BATCH ROWS_PER_TRANSACTION FILE…}.
 *
 * <p>A file has a row a line, values between tabs; TYPES are one letter per column: l (long), i (int), d (double), t (milliseconds of a
 * timestamp), s (string). Where the database is says the environment: HERDDB_url, HERDDB_user, HERDDB_password. The last line of its output
 * tells rows, seconds and CPU seconds, without the start of the JVM.
 */
public final class JdbcLoad {

    private record Settings(String insert, String types, int rowsPerBatch, int rowsPerTransaction) {
    }

    private JdbcLoad() {
    }

    public static void main(String[] arguments) {
        int code = 0;
        try {
            run(arguments);
        } catch (Exception e) {
            System.err.println("jdbc load failed: " + e);
            code = 1;
        }
        // the driver keeps threads of its own
        System.exit(code);
    }

    private static void run(String... arguments) throws Exception {
        Settings settings = new Settings(arguments[0], arguments[1], Integer.parseInt(arguments[2]), Integer.parseInt(arguments[3]));
        OperatingSystemMXBean process = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long begun = System.nanoTime();
        long cpuBegun = process.getProcessCpuTime();
        List<Callable<Long>> loads = new ArrayList<>();
        for (int i = 4; i < arguments.length; i++) {
            Path file = Path.of(arguments[i]);
            loads.add(() -> load(file, settings, System.getenv()));
        }
        ExecutorService pool = Executors.newFixedThreadPool(loads.size());
        long rows = 0;
        for (Future<Long> each : pool.invokeAll(loads)) {
            rows += each.get();
        }
        double seconds = (System.nanoTime() - begun) / 1e9;
        double cpuSeconds = (process.getProcessCpuTime() - cpuBegun) / 1e9;
        System.out.println("{\"rows\": " + rows + ", \"seconds\": " + seconds + ", \"cpu_seconds\": " + cpuSeconds + "}");
    }

    private static long load(Path file, Settings settings, Map<String, String> environment) throws SQLException, IOException {
        long rows = 0;
        try (BufferedReader lines = Files.newBufferedReader(file, StandardCharsets.UTF_8);
                Connection connection = DriverManager.getConnection(
                        environment.get("HERDDB_url"), environment.get("HERDDB_user"), environment.get("HERDDB_password"));
                PreparedStatement insert = connection.prepareStatement(settings.insert())) {
            connection.setAutoCommit(false);
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                set(insert, line.split("\t", -1), settings.types());
                insert.addBatch();
                rows++;
                if (rows % settings.rowsPerBatch() == 0) {
                    insert.executeBatch();
                }
                if (rows % settings.rowsPerTransaction() == 0) {
                    connection.commit();
                }
            }
            if (rows % settings.rowsPerBatch() != 0) {
                insert.executeBatch();
            }
            connection.commit();
        }
        return rows;
    }

    private static void set(PreparedStatement insert, String[] values, String types) throws SQLException {
        for (int i = 0; i < values.length; i++) {
            switch (types.charAt(i)) {
                case 'l' -> insert.setLong(i + 1, Long.parseLong(values[i]));
                case 'i' -> insert.setInt(i + 1, Integer.parseInt(values[i]));
                case 'd' -> insert.setDouble(i + 1, Double.parseDouble(values[i]));
                case 't' -> insert.setTimestamp(i + 1, new Timestamp(Long.parseLong(values[i])));
                case 's' -> insert.setString(i + 1, values[i]);
                default -> throw new IllegalArgumentException("type " + types.charAt(i) + ": use l, i, d, t or s");
            }
        }
    }
}
