package io.herdkeeper.e2e;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.StringJoiner;

/**
 * Reads all registers, and from the same node which one it is, and which ledger it writes: the driver does not tell who answered.
 *
 * @param database schema of the table
 */
record Reading(String database) implements Work {

    @Override
    public String kind() {
        return "read";
    }

    @Override
    public String content(long number) {
        return "";
    }

    @Override
    public Outcome carryOut(Connection connection, long number, String name) {
        String sql = "SELECT r.`register`, r.`value`, l.nodeid, l.`ledger`, l.`offset` FROM " + database + ".checker_register r, " + database + ".syslogstatus l";
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
            StringJoiner values = new StringJoiner(", ", "{", "}");
            String leader = "";
            long ledger = -1;
            while (rows.next()) {
                values.add("\"" + rows.getInt(1) + "\": " + rows.getLong(2));
                leader = rows.getString(3);
                // one that was just opened may be of a node that leads no more, and does not know it
                ledger = rows.getLong(5) < 0 ? -1 : rows.getLong(4);
            }
            return Outcome.read(leader, ledger, values.toString());
        } catch (SQLException readsChangeNothing) {
            return Outcome.fail(readsChangeNothing);
        }
    }
}
