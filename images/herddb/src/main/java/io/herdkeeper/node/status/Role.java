package io.herdkeeper.node.status;

import com.fasterxml.jackson.annotation.JsonValue;
import java.util.Locale;

/** What a tablespace does on this node now. */
public enum Role {
    /** It accepts writes. */
    LEADER,
    /** It applies the leader's log. */
    FOLLOWER,
    /** It is assigned to this node, and reads its checkpoint and its log, or copies from the leader. */
    BOOTING,
    /** Its log or its follower failed; the activator stops it and boots it again. A leader is failed until that boot has succeeded. */
    FAILED,
    /** It is closed here, or not assigned to this node any more. */
    STOPPED;

    @JsonValue
    String json() {
        return name().toLowerCase(Locale.ROOT);
    }
}
