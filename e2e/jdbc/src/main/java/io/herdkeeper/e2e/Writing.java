package io.herdkeeper.e2e;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;

/**
 * Writes growing values into a register that nobody else writes.
 *
 * @param register the register
 * @param database schema of the table
 */
record Writing(int register, String database) implements Work {

    @Override
    public String kind() {
        return "write";
    }

    @Override
    public String content(long number) {
        return "\"register\": " + register + ", \"value\": " + (number + 1);
    }

    @Override
    public Outcome carryOut(Connection connection, long number, String name) throws SQLException {
        String sql = "UPDATE " + database + ".checker_register SET `value` = ? WHERE `register` = ? AND `value` < ?";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setLong(1, number + 1);
            statement.setInt(2, register);
            statement.setLong(3, number + 1);
            // The driver repeats a statement whose first try it takes for refused: then the second one finds the value there.
            int changed = statement.executeUpdate();
            return changed == 1 ? Outcome.ok() : Outcome.unknown(new SQLException("the UPDATE changed " + changed + " rows"));
        }
    }
}
