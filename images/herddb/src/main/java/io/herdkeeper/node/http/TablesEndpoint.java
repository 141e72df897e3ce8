package io.herdkeeper.node.http;

import io.herdkeeper.node.digest.FollowerDigest.NotAFollowerException;
import io.herdkeeper.node.http.Request.BadRequestException;
import io.herdkeeper.node.log.FollowerGate.AlreadyHeldException;
import io.herdkeeper.node.status.NodeStatus;
import io.herdkeeper.node.tables.FollowerTables;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.time.Duration;
import java.util.concurrent.TimeoutException;

/**
 * {@code POST /tablespaces/<name>/tables?timeoutSeconds=T&scanSeconds=S}: all tables of a follower, definitions and rows, as
 * {@link io.herdkeeper.node.tables.TablesWriter} writes them. It is held for S at most, at a position without open transactions, which it has
 * to reach within T. A leader refuses.
 */
final class TablesEndpoint extends CopyOrder {

    private static final long DEFAULT_TIMEOUT_SECONDS = 60;
    private static final long LONGEST_SECONDS = 3600;
    private static final int BUFFERED = 1 << 16;

    TablesEndpoint(NodeStatus node) {
        super("tables", node);
    }

    @Override
    Answer answer(Copy copy, Request request) throws BadRequestException, InterruptedException {
        Duration wait = Duration.ofSeconds(request.number("timeoutSeconds", 1, LONGEST_SECONDS, DEFAULT_TIMEOUT_SECONDS));
        Duration scan = Duration.ofSeconds(request.number("scanSeconds", 1, LONGEST_SECONDS, LONGEST_SECONDS));
        try {
            return Answer.stream("application/octet-stream",
                    new Tables(FollowerTables.held(copy.tablespace(), copy.log(), wait, scan)));
        } catch (NotAFollowerException | AlreadyHeldException error) {
            return Answer.error(409, error.getMessage());
        } catch (TimeoutException error) {
            return Answer.error(504, error.getMessage());
        }
    }

    private record Tables(FollowerTables held) implements Answer.Content {

        @Override
        public void writeTo(OutputStream body) throws IOException {
            OutputStream buffered = new BufferedOutputStream(body, BUFFERED);
            held.writeTo(buffered);
            buffered.flush();
        }

        @Override
        public void close() {
            held.close();
        }
    }
}
