package io.herdkeeper.e2e;

/**
 * What a client knows of an operation that has ended; the words of the history (checker/operation.py).
 *
 * @param phase  ok, fail or unknown
 * @param leader the SQL node that answered, empty where JDBC does not tell
 * @param ledger one in which this node had written an entry, -1 where that is not known
 * @param found  JSON of what a read found, empty otherwise
 * @param error  why it is not ok
 */
record Outcome(String phase, String leader, long ledger, String found, String error) {

    static Outcome ok() {
        return new Outcome("ok", "", -1, "", "");
    }

    static Outcome read(String leader, long ledger, String values) {
        return new Outcome("ok", leader, ledger, values, "");
    }

    /** It certainly had no effect and never will. */
    static Outcome fail(Exception error) {
        return new Outcome("fail", "", -1, "", String.valueOf(error));
    }

    /** It may have had its effect, or have it later. */
    static Outcome unknown(Exception error) {
        return new Outcome("unknown", "", -1, "", String.valueOf(error));
    }
}
