package io.herdkeeper.bookie;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.auth.BookKeeperPrincipal;
import org.apache.bookkeeper.auth.BookieAuthProvider;
import org.apache.bookkeeper.proto.BookieConnectionPeer;
import org.junit.jupiter.api.Test;

/** What happens to connections with and without TLS; a real bookie is asked by test_bookies_ask_for_certificates.py. */
class TlsRequiredFactoryTest {

    private static final Duration SOON = Duration.ofMillis(50);
    private static final Duration NEVER = Duration.ofDays(1);
    private static final long PATIENCE_SECONDS = 60;

    @Test
    void aConnectionThatDoesNotAskForTlsIsToldOnceAndEnds() throws Exception {
        long told = told();
        Peer plain = new Peer(false);
        BookieAuthProvider provider = accepted(plain, SOON);
        assertTrue(plain.ended.await(PATIENCE_SECONDS, TimeUnit.SECONDS));
        provider.close();
        assertEquals(told + 1, told());
    }

    @Test
    void aConnectionThatEndsWithoutTlsIsToldOnce() {
        long told = told();
        BookieAuthProvider provider = accepted(new Peer(false), NEVER);
        assertEquals(told, told(), "it may still ask");
        provider.close();
        provider.close();
        assertEquals(told + 1, told());
    }

    @Test
    void aConnectionWithTlsIsNeitherToldNorEnded() throws Exception {
        long told = told();
        Peer encrypted = new Peer(true);
        BookieAuthProvider provider = accepted(encrypted, SOON);
        Peer plain = new Peer(false);
        accepted(plain, SOON);
        assertTrue(plain.ended.await(PATIENCE_SECONDS, TimeUnit.SECONDS), "the deadline of the other one is over then");
        provider.close();
        assertFalse(encrypted.ended.await(0, TimeUnit.SECONDS));
        assertEquals(told + 1, told());
    }

    @Test
    void aConnectionThatABookieEndsBeforeItServesIsNotTold() {
        long told = told();
        accepted(new Peer(false, null), NEVER).close();
        assertEquals(told, told(), "BookKeeper knows no address of it (RejectRequestHandler)");
    }

    private static BookieAuthProvider accepted(Peer peer, Duration patience) {
        return new TlsRequiredFactory(patience).newProvider(peer, (code, nothing) -> {});
    }

    private static long told() {
        return Long.parseLong(TlsRequiredFactory.REFUSALS.metric().replaceAll("^.* ", "").strip());
    }

    /** A connection. */
    private static final class Peer implements BookieConnectionPeer {
        private final CountDownLatch ended = new CountDownLatch(1);
        private final boolean secure;
        private final SocketAddress address;

        Peer(boolean secure) {
            this(secure, new InetSocketAddress("127.0.0.1", 1));
        }

        Peer(boolean secure, SocketAddress address) {
            this.secure = secure;
            this.address = address;
        }

        @Override
        public boolean isSecure() {
            return secure;
        }

        @Override
        public void disconnect() {
            ended.countDown();
        }

        @Override
        public SocketAddress getRemoteAddr() {
            return address;
        }

        @Override
        public Collection<Object> getProtocolPrincipals() {
            return List.of();
        }

        @Override
        public BookKeeperPrincipal getAuthorizedId() {
            return BookKeeperPrincipal.ANONYMOUS;
        }

        @Override
        public void setAuthorizedId(BookKeeperPrincipal principal) {}
    }
}
