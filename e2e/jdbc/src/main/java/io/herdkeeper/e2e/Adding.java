package io.herdkeeper.e2e;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

/**
 * Adds rows to the set, as Adding in checker/work.py does: one row is a statement of its own, several are a transaction.
 *
 * @param client   unique among all that add
 * @param database schema of the table
 */
record Adding(int client, String database) implements Work {

    private static final int[] SIZES = {1, 3, 1, 5};
    private static final int ROLLED_BACK_EVERY = 16;
    private static final long MOST_ROWS = 10;
    private static final long MOST_OPERATIONS = 1_000_000_000;

    @Override
    public String kind() {
        return "add";
    }

    @Override
    public String content(long number) {
        String rows = LongStream.of(rows(number)).mapToObj(Long::toString).collect(Collectors.joining(", "));
        return "\"rows\": [" + rows + "]";
    }

    @Override
    public Outcome carryOut(Connection connection, long number, String name) throws SQLException {
        long[] rows = rows(number);
        if (rows.length == 1) {
            insert(connection, rows[0], name);
            return Outcome.ok();
        }
        try {
            connection.setAutoCommit(false);
            for (int i = 0; i < rows.length - 1; i++) {
                insert(connection, rows[i], name);
            }
            insert(connection, rows[rows.length - 1], "");
            nameRow(connection, rows[rows.length - 1], name);
            if (number % ROLLED_BACK_EVERY == ROLLED_BACK_EVERY - 1) {
                throw new SQLException("rolled back by the client");
            }
        } catch (SQLException beforeCommit) {
            rollBack(connection);
            return Outcome.fail(beforeCommit);
        }
        connection.commit();
        connection.setAutoCommit(true);
        return Outcome.ok();
    }

    private long[] rows(long number) {
        long first = (client * MOST_OPERATIONS + number) * MOST_ROWS;
        return LongStream.range(first, first + SIZES[(int) (number % SIZES.length)]).toArray();
    }

    private void insert(Connection connection, long row, String name) throws SQLException {
        String sql = "INSERT INTO " + database + ".checker_set (`id`, `operation`) VALUES (?, ?)";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setLong(1, row);
            statement.setString(2, name);
            statement.executeUpdate();
        }
    }

    private void nameRow(Connection connection, long row, String name) throws SQLException {
        String sql = "UPDATE " + database + ".checker_set SET `operation` = ? WHERE `id` = ?";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, name);
            statement.setLong(2, row);
            statement.executeUpdate();
        }
    }

    /** Without a COMMIT nothing becomes visible, whether the server hears of the ROLLBACK or not. */
    private static void rollBack(Connection connection) {
        try {
            connection.rollback();
        } catch (SQLException ignored) {
            // the connection is given up by the caller
        }
    }
}
