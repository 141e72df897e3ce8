package io.herdkeeper.node.http;

import herddb.metadata.MetadataStorageManagerException;
import io.herdkeeper.node.evidence.LocalCopies;
import io.herdkeeper.node.evidence.LocalCopies.NoSuchTablespaceException;
import io.herdkeeper.node.evidence.LocalCopies.RefusedException;
import io.herdkeeper.node.http.Request.BadRequestException;
import io.herdkeeper.node.log.Position;
import java.io.IOException;
import java.util.Map;

/**
 * {@code POST /tablespaces/<name>/bar?uuid=U&until=LEDGER,ENTRY}: from now on this node does not promote itself to leader of the tablespace.
 * {@code POST /tablespaces/<name>/unbar?uuid=U&until=LEDGER,ENTRY}: it may again, unless the bar is of a later LSN. {@code until}, the LSN that
 * a verdict must exceed to lift the bar, may be left out.
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
    Map<String, Object> done(String name, String uuid, Map<String, String> query) throws BadRequestException, NoSuchTablespaceException,
            RefusedException, MetadataStorageManagerException, IOException {
        Position until = until(query.get("until"));
        if (barred) {
            copies.bar(name, uuid, until);
        } else {
            copies.unbar(name, uuid, until);
        }
        return Map.of("barred", barred);
    }

    private static Position until(String told) throws BadRequestException {
        if (told == null) {
            return null;
        }
        Position until = Position.parse(told);
        if (until == null) {
            throw new BadRequestException("query parameter until=" + told + " must be an LSN: <ledger id>,<entry id>");
        }
        return until;
    }
}
