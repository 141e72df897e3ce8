package io.herdkeeper.e2e.clients;

/**
 * A log on the bookies, with a writer, a reader that follows it, and one that reads all of it afterwards.
 */
interface Log extends AutoCloseable {

    /** Writes until told to stop; what went wrong is tried again by other means. All answers have come when it returns. */
    void write(Written written, Until stop) throws Exception;

    /** Reads from the beginning, while it is written, until told; never fences, and never reads above what is confirmed. */
    void tail(Received received, Until over) throws Exception;

    /** Reads all of it with a client of its own, after the end. */
    void readBack(Received received, Until over) throws Exception;

    @Override
    void close() throws Exception;
}
