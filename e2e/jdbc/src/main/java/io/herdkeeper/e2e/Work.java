package io.herdkeeper.e2e;

import java.sql.Connection;
import java.sql.SQLException;

/** One kind of operation, which a client does again and again. */
interface Work {

    /** add, write or read. */
    String kind();

    /** The fields of operation {@code number} that are known when it begins, as JSON without braces. */
    String content(long number);

    /**
     * Does it.
     *
     * @param name of the operation, which its rows carry
     * @throws SQLException when nobody knows whether it took effect
     */
    Outcome carryOut(Connection connection, long number, String name) throws SQLException;
}
