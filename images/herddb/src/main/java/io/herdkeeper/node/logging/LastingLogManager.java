package io.herdkeeper.node.logging;

import java.util.logging.LogManager;

/**
 * Loggers that write until the process ends.
 *
 * <p>The JDK's own manager removes the handlers in a shutdown hook, while this program's hook hands leaderships over: the handover would
 * not be logged. The handlers need no close, since each record is flushed.
 */
public final class LastingLogManager extends LogManager {

    @Override
    public void reset() {
        // see above
    }
}
