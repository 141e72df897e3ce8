package io.herdkeeper.e2e;

import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.DriverManager;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * Several JDBC clients at once: {@code JdbcWorkload HISTORY FIRST_CLIENT ADDERS REGISTER READERS PAUSE_MILLISECONDS}.
 *
 * <p>Where the database is says the environment: the keys of a Tablespace's connection Secret, with the prefix {@code HERDDB_}. The tables
 * are there already. It works until a line {@code stop} or the end of standard input, and tells on standard output how many writes were
 * acknowledged, as checker/workload.py does.
 */
public final class JdbcWorkload {

    private static final long REPORT_MILLISECONDS = 250;

    private JdbcWorkload() {
    }

    public static void main(String[] arguments) throws Exception {
        CountDownLatch stop = new CountDownLatch(1);
        Thread orders = new Thread(() -> stopWhenTold(stop), "orders");
        orders.setDaemon(true);
        orders.start();
        int code = 0;
        try {
            run(arguments, System.getenv(), stop);
        } catch (ExecutionException | IOException e) {
            System.err.println("jdbc workload failed: " + e);
            code = 1;
        }
        // the driver keeps threads of its own
        System.exit(code);
    }

    static void run(String[] arguments, Map<String, String> environment, CountDownLatch stop) throws Exception {
        try (Writer file = Files.newBufferedWriter(Path.of(arguments[0]), StandardCharsets.UTF_8)) {
            History history = new History(file);
            List<Client> clients = clients(arguments, environment, history);
            ExecutorService pool = Executors.newFixedThreadPool(clients.size());
            List<Future<Void>> running = clients.stream().map(client -> pool.submit(client.until(stop))).toList();
            pool.shutdown();
            do {
                System.out.println("{\"acknowledged\": " + history.acknowledged() + "}");
                failIfOneFailed(running);
            } while (!pool.awaitTermination(REPORT_MILLISECONDS, TimeUnit.MILLISECONDS));
            failIfOneFailed(running);
        }
    }

    private static List<Client> clients(String[] arguments, Map<String, String> environment, History history) {
        String database = environment.get("HERDDB_database");
        Client.Connector connector = () -> DriverManager.getConnection(
                environment.get("HERDDB_url"), environment.get("HERDDB_user"), environment.get("HERDDB_password"));
        int firstClient = Integer.parseInt(arguments[1]);
        int register = Integer.parseInt(arguments[3]);
        long pause = Long.parseLong(arguments[5]);
        List<Client> clients = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(arguments[2]); i++) {
            clients.add(new Client("jdbc-adder-" + (firstClient + i), new Adding(firstClient + i, database), connector, history, pause));
        }
        clients.add(new Client("jdbc-writer-" + register, new Writing(register, database), connector, history, pause));
        for (int i = 0; i < Integer.parseInt(arguments[4]); i++) {
            clients.add(new Client("jdbc-reader-" + i, new Reading(database), connector, history, pause));
        }
        return clients;
    }

    private static void failIfOneFailed(List<Future<Void>> running) throws InterruptedException, ExecutionException {
        for (Future<Void> each : running) {
            if (each.isDone()) {
                each.get();
            }
        }
    }

    private static void stopWhenTold(CountDownLatch stop) {
        try {
            byte[] piece = new byte[64];
            int size = System.in.read(piece);
            while (size >= 0 && !new String(piece, 0, size, StandardCharsets.UTF_8).contains("stop")) {
                size = System.in.read(piece);
            }
        } catch (IOException inputIsGone) {
            // as good as its end
        } finally {
            stop.countDown();
        }
    }
}
