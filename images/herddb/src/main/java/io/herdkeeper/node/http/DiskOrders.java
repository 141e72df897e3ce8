package io.herdkeeper.node.http;

import herddb.metadata.MetadataStorageManagerException;
import io.herdkeeper.node.evidence.LocalCopies;
import io.herdkeeper.node.evidence.LocalCopies.Evidence;
import io.herdkeeper.node.evidence.LocalCopies.NoSuchTablespaceException;
import io.herdkeeper.node.http.Request.BadRequestException;
import io.herdkeeper.node.log.Position;
import io.herdkeeper.node.refusals.OrderRefusedException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/** Orders about what this node's disk has of one tablespace; {@code ?uuid=U} says which one of that name is meant. */
record DiskOrders(LocalCopies copies) {

    /** It becomes part of a path. */
    private static final Pattern UUID = Pattern.compile("[A-Za-z0-9-]{1,64}");

    /** Does one of them. */
    private interface Order {

        /** What the answer has besides name and uuid. What else it throws becomes 400 or 500. */
        Map<String, Object> done(String name, String uuid, Request request) throws Exception;
    }

    List<Endpoint> all() {
        return List.of(order("set-aside", this::setAside), order("bar", this::bar), order("unbar", this::unbar));
    }

    private static Endpoint order(String name, Order order) {
        return Endpoint.order(name, request -> {
            String uuid = request.query().getOrDefault("uuid", "");
            if (!UUID.matcher(uuid).matches()) {
                throw new BadRequestException("query parameter uuid=" + uuid + " must be the tablespace's uuid, as GET /tablespaces has it");
            }
            try {
                Map<String, Object> json = new LinkedHashMap<>();
                json.put("tablespace", request.tablespace());
                json.put("uuid", uuid);
                json.putAll(order.done(request.tablespace(), uuid, request));
                return Answer.json(200, json);
            } catch (NoSuchTablespaceException error) {
                return Answer.error(404, error.getMessage());
            } catch (OrderRefusedException error) {
                return Answer.error(409, error.getMessage());
            } catch (MetadataStorageManagerException error) {
                return Answer.error(503, "the replica list can't be read from ZooKeeper, and nothing was done: " + error);
            }
        });
    }

    /**
     * {@code POST /tablespaces/<name>/set-aside?uuid=U}: this node's files of a tablespace that it no longer replicates become evidence, so
     * its next replica starts from nothing.
     */
    private Map<String, Object> setAside(String name, String uuid, Request request) throws Exception {
        Evidence moved = copies.setAside(name, uuid);
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("evidence", moved == null ? null : moved.folder().toString());
        json.put("checkpoint", moved == null ? null : Position.of(moved.checkpoint()));
        return json;
    }

    /**
     * {@code POST /tablespaces/<name>/bar?uuid=U&until=LEDGER,ENTRY}: from now on this node does not promote itself to leader of the
     * tablespace. {@code until}, the LSN that a verdict must exceed to lift the bar, may be left out.
     */
    private Map<String, Object> bar(String name, String uuid, Request request) throws Exception {
        copies.bar(name, uuid, until(request));
        return Map.of("barred", true);
    }

    /** {@code POST /tablespaces/<name>/unbar?uuid=U&until=LEDGER,ENTRY}: it may again, unless the bar is of a later LSN. */
    private Map<String, Object> unbar(String name, String uuid, Request request) throws Exception {
        copies.unbar(name, uuid, until(request));
        return Map.of("barred", false);
    }

    private static Position until(Request request) throws BadRequestException {
        String told = request.query().get("until");
        Position until = told == null ? null : Position.parse(told);
        if (told != null && until == null) {
            throw new BadRequestException("query parameter until=" + told + " must be an LSN: <ledger id>,<entry id>");
        }
        return until;
    }
}
