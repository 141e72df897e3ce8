package io.herdkeeper.node.http;

import herddb.metadata.MetadataStorageManagerException;
import io.herdkeeper.node.evidence.LocalCopies;
import io.herdkeeper.node.evidence.LocalCopies.NoSuchTablespaceException;
import io.herdkeeper.node.evidence.LocalCopies.RefusedException;
import java.io.IOException;
import java.util.Map;

/**
 * {@code POST /tablespaces/<name>/bar?uuid=U}: from now on this node does not promote itself to leader of the tablespace. {@code POST
 * /tablespaces/<name>/unbar?uuid=U}: it may again.
 */
final class BarEndpoint extends DiskOrder {

    private final LocalCopies copies;
    private final boolean barred;

    private BarEndpoint(String order, LocalCopies copies, boolean barred) {
        super(order);
        this.copies = copies;
        this.barred = barred;
    }

    static BarEndpoint bar(LocalCopies copies) {
        return new BarEndpoint("bar", copies, true);
    }

    static BarEndpoint unbar(LocalCopies copies) {
        return new BarEndpoint("unbar", copies, false);
    }

    @Override
    Map<String, Object> done(String name, String uuid)
            throws NoSuchTablespaceException, RefusedException, MetadataStorageManagerException, IOException {
        if (barred) {
            copies.bar(name, uuid);
        } else {
            copies.unbar(name, uuid);
        }
        return Map.of("barred", barred);
    }
}
