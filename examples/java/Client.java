import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLIntegrityConstraintViolationException;
import java.sql.Statement;
import java.util.Map;
import java.util.UUID;
import javax.sql.DataSource;

/**
 * A program that reads and writes by JDBC through a pool, in a pod with the connection Secret as client-jdbc.yaml gives it
 * ({@code HERDDB_url}, {@code HERDDB_user}, {@code HERDDB_password}, {@code HERDDB_database}).
 */
public final class Client {

    private static final int ATTEMPTS = 5;

    private Client() {
    }

    /** Makes two tables, books twice under one key, and prints what is there. */
    public static void main(String[] arguments) throws Exception {
        try (HikariDataSource pool = new HikariDataSource(settings(System.getenv()))) {
            try (Connection connection = pool.getConnection(); Statement statement = connection.createStatement()) {
                statement.executeUpdate("CREATE TABLE IF NOT EXISTS capacity_java (flight string PRIMARY KEY, seats int)");
                statement.executeUpdate("CREATE TABLE IF NOT EXISTS bookings_java (id string PRIMARY KEY, seats int)");
                statement.executeUpdate("UPSERT INTO capacity_java(flight, seats) VALUES('UA1', 100)");
                connection.commit();
            }
            String booking = UUID.randomUUID().toString();
            book(pool, booking, 2);
            book(pool, booking, 2);
            try (Connection connection = pool.getConnection();
                    Statement statement = connection.createStatement();
                    ResultSet rows = statement.executeQuery("SELECT flight, seats FROM capacity_java")) {
                while (rows.next()) {
                    System.out.println(rows.getString("flight") + " " + rows.getInt("seats"));
                }
            }
        }
        System.exit(0);  // the driver's own threads don't end with the pool
    }

    /** The driver has one network connection for all of them; it is the transactions that a pool counts. */
    private static HikariConfig settings(Map<String, String> environment) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(environment.get("HERDDB_url"));
        config.setUsername(environment.get("HERDDB_user"));
        config.setPassword(environment.get("HERDDB_password"));
        config.setSchema(environment.get("HERDDB_database"));  // the tablespace; else it is `herd`
        config.setAutoCommit(false);
        config.setMaximumPoolSize(5);
        config.setConnectionTimeout(30_000);
        return config;
    }

    /** A transaction that may be repeated as a whole: its key was chosen before, so a second time can't book twice. */
    private static void book(DataSource pool, String booking, int seats) throws Exception {
        for (int attempt = 1; ; attempt++) {
            try (Connection connection = pool.getConnection()) {  // the pool rolls back what is not committed
                update(connection, "INSERT INTO bookings_java(id, seats) VALUES(?, ?)", booking, seats);
                update(connection, "UPDATE capacity_java SET seats = seats - ? WHERE flight = ?", seats, "UA1");
                connection.commit();
                return;
            } catch (SQLIntegrityConstraintViolationException bookedBefore) {
                return;  // perhaps by a COMMIT whose answer was lost
            } catch (SQLException error) {
                // A COMMIT may have happened although it failed here: then the key tells it next time.
                if (attempt == ATTEMPTS) {
                    throw error;
                }
                Thread.sleep(1_000);
            }
        }
    }

    private static void update(Connection connection, String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < values.length; i++) {
                statement.setObject(i + 1, values[i]);
            }
            statement.executeUpdate();
        }
    }
}
