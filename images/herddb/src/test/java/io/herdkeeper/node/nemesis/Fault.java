package io.herdkeeper.node.nemesis;

import java.util.ArrayList;
import java.util.List;

/** What happens to a node at a point. */
public enum Fault {
    /** The call waits until the other node leads and has acknowledged a row, or until it is plain that it can't. */
    STOP,
    /** The call waits until clients have written to both nodes, the leader has changed its ledger, and both nodes have tried a checkpoint. */
    DELAY,
    /** ZooKeeper ends the sessions of the process, as of one that was silent for too long; the call comes after that. */
    EXPIRE,
    /** The power is cut: nothing more of this process acts. It is started again once the other node leads. */
    KILL,
    /** The call has no effect, and throws what the real one may throw. */
    FAIL,
    /** The call has its effect, and its answer is an error. */
    LOSE;

    /** What can happen at a point. Before what only asks a kill is the same as before the next change. */
    static List<Fault> at(Call call, Moment moment) {
        List<Fault> faults = new ArrayList<>();
        if (moment == Moment.BEFORE) {
            faults.add(STOP);
            faults.add(DELAY);
            if (call.kind() != Kind.DISK && call.kind() != Kind.APPLY) {
                faults.add(EXPIRE);
            }
            if (call.changes()) {
                faults.add(KILL);
            }
            if (call.kind() != Kind.STEP) {
                faults.add(FAIL);
            }
        } else if (call.changes()) {
            faults.add(KILL);
            faults.add(STOP);
            if (call.kind() == Kind.ZOOKEEPER || call.kind() == Kind.BOOKKEEPER) {
                faults.add(LOSE);
            }
        }
        return faults;
    }
}
