package io.herdkeeper.node.http;

import herddb.metadata.MetadataStorageManagerException;
import io.herdkeeper.node.evidence.LocalCopies;
import io.herdkeeper.node.evidence.LocalCopies.Evidence;
import io.herdkeeper.node.evidence.LocalCopies.NoSuchTablespaceException;
import io.herdkeeper.node.evidence.LocalCopies.RefusedException;
import io.herdkeeper.node.log.Position;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * {@code POST /tablespaces/<name>/set-aside?uuid=U}: this node's files of a tablespace that it no longer replicates become evidence, so
 * its next replica starts from nothing.
 */
final class SetAsideEndpoint extends DiskOrder {

    private final LocalCopies copies;

    SetAsideEndpoint(LocalCopies copies) {
        super("set-aside");
        this.copies = copies;
    }

    @Override
    Map<String, Object> done(String name, String uuid, Map<String, String> query) throws NoSuchTablespaceException, RefusedException,
            MetadataStorageManagerException, IOException, InterruptedException {
        Evidence moved = copies.setAside(name, uuid);
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("evidence", moved == null ? null : moved.folder().toString());
        json.put("checkpoint", moved == null ? null : Position.of(moved.checkpoint()));
        return json;
    }
}
