package io.herdkeeper.node.http;

import io.herdkeeper.node.leadership.ActivatorWaker;
import java.util.List;
import java.util.Map;

/** {@code POST /activator/wake}: the node applies a changed leadership now. */
final class WakeEndpoint implements Endpoint {

    private final ActivatorWaker waker;

    WakeEndpoint(ActivatorWaker waker) {
        this.waker = waker;
    }

    @Override
    public List<String> path() {
        return List.of("activator", "wake");
    }

    @Override
    public boolean needsToken() {
        return true;
    }

    @Override
    public Answer answer(Request request) {
        waker.wake();
        return Answer.json(202, Map.of("woken", true));
    }
}
