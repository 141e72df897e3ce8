package io.herdkeeper.e2e.clients;

/**
 * What a program says at its end, as one line of JSON.
 *
 * @param acknowledged entries that the log promised to keep
 * @param tailed entries that the reader got that followed the writer
 * @param read entries that a client of its own read back after the end
 * @param gaps JSON of the gaps after each mark
 * @param violation why this contradicts the promise, or null
 */
record Report(long acknowledged, long tailed, long read, String gaps, String violation) {

    /** The report on a writer that has ended. */
    static Report of(Written written, Received tailed, Received readBack) {
        String violation = named("the reader that follows", tailed.violation(written));
        if (violation == null) {
            violation = named("the reader afterwards", readBack.violation(written));
        }
        return new Report(written.acknowledged(), tailed.count(), readBack.count(), written.gaps(), violation);
    }

    /** One line. */
    String toLine() {
        return String.format("{\"report\": {\"acknowledged\": %d, \"tailed\": %d, \"read\": %d, \"gaps\": %s, \"violation\": %s}}",
                acknowledged, tailed, read, gaps, Json.text(violation));
    }

    private static String named(String who, String violation) {
        return violation == null ? null : who + ": " + violation;
    }
}
