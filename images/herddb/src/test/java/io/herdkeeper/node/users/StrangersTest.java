package io.herdkeeper.node.users;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.netty.channel.embedded.EmbeddedChannel;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class StrangersTest {

    private final Strangers strangers = new Strangers();
    private final List<EmbeddedChannel> open = new ArrayList<>();

    @AfterEach
    void close() {
        open.forEach(EmbeddedChannel::finishAndReleaseAll);
    }

    @Test
    void aClientIsNotCutOffBesideClientsThatLoggedInAndAskedForNothingSince() {
        connect(Strangers.MOST, true);
        assertTrue(connect(1, false).get(0).isOpen());
        assertTrue(open.stream().allMatch(EmbeddedChannel::isOpen));
    }

    @Test
    void whoHasWaitedForLongestMakesRoom() {
        EmbeddedChannel first = connect(1, false).get(0);
        connect(1, true);
        List<EmbeddedChannel> others = connect(Strangers.MOST - 1, false);
        assertTrue(first.isOpen());
        others.addAll(connect(1, false));
        assertFalse(first.isOpen());
        assertTrue(others.stream().allMatch(EmbeddedChannel::isOpen));
    }

    private List<EmbeddedChannel> connect(int connections, boolean loggedIn) {
        List<EmbeddedChannel> made = new ArrayList<>();
        for (int i = 0; i < connections; i++) {
            made.add(new EmbeddedChannel(new BeforeLogin(() -> loggedIn, strangers)));
        }
        open.addAll(made);
        return made;
    }
}
