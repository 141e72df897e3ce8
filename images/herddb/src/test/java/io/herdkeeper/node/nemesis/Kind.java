package io.herdkeeper.node.nemesis;

/** What a node calls. */
public enum Kind {
    /** A request to ZooKeeper. */
    ZOOKEEPER("zk"),
    /** A request to a bookie, or of BookKeeper's client to its metadata. */
    BOOKKEEPER("bk"),
    /** A step on the disk. */
    DISK("disk"),
    /** The application of a log entry to the tables. */
    APPLY("apply"),
    /** A step of a tablespace's boot, life or end, which fails only by the calls within it. */
    STEP("step");

    private final String label;

    Kind(String label) {
        this.label = label;
    }

    @Override
    public String toString() {
        return label;
    }
}
