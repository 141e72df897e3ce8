package io.herdkeeper.node.http;

import herddb.metadata.MetadataStorageManagerException;
import io.herdkeeper.node.evidence.LocalCopies;
import io.herdkeeper.node.evidence.LocalCopies.Evidence;
import io.herdkeeper.node.evidence.LocalCopies.NoSuchTablespaceException;
import io.herdkeeper.node.evidence.LocalCopies.StillUsedException;
import io.herdkeeper.node.http.Request.BadRequestException;
import io.herdkeeper.node.status.Position;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * {@code POST /tablespaces/<name>/set-aside?uuid=U}: what this node's disk has of a tablespace that it no longer replicates
 * becomes evidence, so that its next copy is made anew.
 */
final class SetAsideEndpoint extends TablespaceOrder {

    /** It becomes part of a path. */
    private static final Pattern UUID = Pattern.compile("[A-Za-z0-9-]{1,64}");

    private final LocalCopies copies;

    SetAsideEndpoint(LocalCopies copies) {
        super("set-aside");
        this.copies = copies;
    }

    @Override
    Answer answer(String name, Request request) throws BadRequestException, IOException, InterruptedException {
        String uuid = request.query().getOrDefault("uuid", "");
        if (!UUID.matcher(uuid).matches()) {
            throw new BadRequestException("query parameter uuid=" + uuid + " must be the tablespace's uuid, as GET /tablespaces has it");
        }
        try {
            return Answer.json(200, json(name, uuid, copies.setAside(name, uuid)));
        } catch (NoSuchTablespaceException error) {
            return Answer.error(404, error.getMessage());
        } catch (StillUsedException error) {
            return Answer.error(409, error.getMessage());
        } catch (MetadataStorageManagerException error) {
            return Answer.error(503, "ZooKeeper can't be asked who replicates the tablespace, and nothing was moved: " + error);
        }
    }

    private static Map<String, Object> json(String name, String uuid, Evidence moved) {
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("tablespace", name);
        json.put("uuid", uuid);
        json.put("evidence", moved == null ? null : moved.folder().toString());
        json.put("checkpoint", moved == null ? null : Position.of(moved.checkpoint()));
        return json;
    }
}
