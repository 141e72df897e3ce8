package io.herdkeeper.e2e;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * A thread's loop: one operation after the other, with a new connection after whatever did not succeed.
 *
 * @param process   name in the history
 * @param work      what it does
 * @param connector opens a connection
 * @param history   where it is recorded
 * @param pause     milliseconds between two operations, which keep the clients' share of the machine small
 */
record Client(String process, Work work, Connector connector, History history, long pause) {

    /** Opens connections. */
    interface Connector {
        Connection open() throws SQLException;
    }

    /** Works until {@code stop} is counted down. */
    Callable<Void> until(CountDownLatch stop) {
        return () -> {
            Connection connection = null;
            long number = 0;
            while (!stop.await(pause, TimeUnit.MILLISECONDS)) {
                if (connection == null) {
                    connection = connected();
                }
                if (connection != null && !succeeds(connection, number++)) {
                    close(connection);
                    connection = null;
                }
            }
            if (connection != null) {
                close(connection);
            }
            return null;
        };
    }

    private boolean succeeds(Connection connection, long number) {
        history.begin(process, number, work.kind(), work.content(number));
        Outcome outcome;
        try {
            outcome = work.carryOut(connection, number, process + "/" + number);
        } catch (SQLException | RuntimeException nobodyKnows) {
            outcome = Outcome.unknown(nobodyKnows);
        }
        history.end(process, number, work.kind(), outcome);
        return outcome.phase().equals("ok");
    }

    private Connection connected() {
        try {
            return connector.open();
        } catch (SQLException | RuntimeException noLeaderYet) {
            return null;
        }
    }

    private static void close(Connection connection) {
        try {
            connection.close();
        } catch (SQLException | RuntimeException ignored) {
            // it was of no use any more
        }
    }
}
