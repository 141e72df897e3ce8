package io.herdkeeper.node.log;

import java.util.List;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.NoNodeException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.ZooKeeper;

/**
 * What the majority of ZooKeeper's members knows.
 *
 * <p>One member answers a read, with what it has. It may be behind: one that is slow, or cut off from its leader. A sync only has it catch up
 * with its leader, which may be cut off itself, and not know yet that the others have another one.
 */
public final class Majority {

    private Majority() {
    }

    /**
     * Has what a session reads from now on be no older than this call.
     *
     * <p>A majority takes part in a transaction, also in one that changes nothing, and the session's member has all before it when it answers.
     *
     * @param path of a znode that the caller may read; it need not be there
     * @throws KeeperException no majority has answered
     */
    public static void catchUp(ZooKeeper session, String path) throws KeeperException, InterruptedException {
        try {
            session.multi(List.of(Op.check(path, -1)));
        } catch (NoNodeException none) {
            // the majority says so
        }
    }
}
