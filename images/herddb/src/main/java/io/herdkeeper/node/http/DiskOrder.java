package io.herdkeeper.node.http;

import herddb.metadata.MetadataStorageManagerException;
import io.herdkeeper.node.evidence.LocalCopies.NoSuchTablespaceException;
import io.herdkeeper.node.evidence.LocalCopies.RefusedException;
import io.herdkeeper.node.http.Request.BadRequestException;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Pattern;

/** An order about what this node's disk has of one tablespace; {@code ?uuid=U} says which one of that name is meant. */
abstract class DiskOrder extends TablespaceOrder {

    /** It becomes part of a path. */
    private static final Pattern UUID = Pattern.compile("[A-Za-z0-9-]{1,64}");

    DiskOrder(String order) {
        super(order);
    }

    @Override
    final Answer answer(String name, Request request) throws BadRequestException, IOException, InterruptedException {
        String uuid = request.query().getOrDefault("uuid", "");
        if (!UUID.matcher(uuid).matches()) {
            throw new BadRequestException("query parameter uuid=" + uuid + " must be the tablespace's uuid, as GET /tablespaces has it");
        }
        try {
            Map<String, Object> json = new LinkedHashMap<>();
            json.put("tablespace", name);
            json.put("uuid", uuid);
            json.putAll(done(name, uuid, request.query()));
            return Answer.json(200, json);
        } catch (NoSuchTablespaceException error) {
            return Answer.error(404, error.getMessage());
        } catch (RefusedException error) {
            return Answer.error(409, error.getMessage());
        } catch (MetadataStorageManagerException error) {
            return Answer.error(503, "the replica list can't be read from ZooKeeper, and nothing was done: " + error);
        }
    }

    /** Does it, and gives what the answer has besides name and uuid; what else it throws becomes 500. */
    abstract Map<String, Object> done(String name, String uuid, Map<String, String> query) throws BadRequestException,
            NoSuchTablespaceException, RefusedException, MetadataStorageManagerException, IOException, InterruptedException;
}
