package io.herdkeeper.node.nemesis;

import java.util.List;
import java.util.regex.Pattern;

/** Names what a call is for, alike in each run. */
final class Caller {

    private static final List<String> WAYS = List.of("herddb.cluster.ZookeeperMetadataStorageManager", "herddb.utils.",
            "io.herdkeeper.node.leadership.LeadershipMetadata", "io.herdkeeper.node.nemesis.");
    private static final Pattern ID = Pattern.compile("[0-9a-f]{32}");
    private static final Pattern NUMBER = Pattern.compile("\\d+");

    private Caller() {
    }

    /** The part of HerdDB, or of the node program, on whose behalf this thread calls. */
    static String of() {
        return StackWalker.getInstance().walk(frames -> frames
                .filter(frame -> frame.getClassName().startsWith("herddb.") || frame.getClassName().startsWith("io.herdkeeper.node."))
                .filter(frame -> WAYS.stream().noneMatch(frame.getClassName()::startsWith))
                .filter(frame -> !frame.getMethodName().contains("$"))
                .findFirst()
                .map(frame -> frame.getClassName().replaceFirst(".*[.$]", "") + "." + frame.getMethodName())
                .orElse("nobody"));
    }

    /** A path without what is another one in each run. */
    static String plain(String path) {
        return NUMBER.matcher(ID.matcher(path).replaceAll("ID")).replaceAll("N");
    }
}
