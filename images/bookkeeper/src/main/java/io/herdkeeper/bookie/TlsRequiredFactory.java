package io.herdkeeper.bookie;

import io.netty.util.concurrent.GlobalEventExecutor;
import java.time.Duration;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.bookkeeper.auth.AuthCallbacks.GenericCallback;
import org.apache.bookkeeper.auth.AuthToken;
import org.apache.bookkeeper.auth.BookieAuthProvider;
import org.apache.bookkeeper.proto.BookieConnectionPeer;
import org.apache.bookkeeper.tls.BookieAuthZFactory;

/**
 * BookKeeper's check of certificates, which also counts and logs connections that don't ask for TLS. BookKeeper only answers their requests
 * as unauthorized, and keeps the connections (AuthHandler.ServerSideHandler, 4.18). Here they end after a while: its clients ask at once.
 */
public final class TlsRequiredFactory extends BookieAuthZFactory {

    static final Refusals REFUSALS = new Refusals("plaintext");

    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private final Duration patience;

    public TlsRequiredFactory() {
        this(PATIENCE);
    }

    TlsRequiredFactory(Duration patience) {
        this.patience = patience;
    }

    @Override
    public BookieAuthProvider newProvider(BookieConnectionPeer peer, GenericCallback<Void> completed) {
        BookieAuthProvider checked = super.newProvider(peer, completed);
        AtomicBoolean reported = new AtomicBoolean();
        Runnable end = () -> {
            if (reportOnce(peer, reported)) {
                peer.disconnect();
            }
        };
        Future<?> deadline = GlobalEventExecutor.INSTANCE.schedule(end, patience.toMillis(), TimeUnit.MILLISECONDS);
        return new BookieAuthProvider() {
            @Override
            public void onProtocolUpgrade() {
                checked.onProtocolUpgrade();
            }

            @Override
            public void process(AuthToken message, GenericCallback<AuthToken> answer) {
                checked.process(message, answer);
            }

            @Override
            public void close() {
                deadline.cancel(false);
                reportOnce(peer, reported);
                checked.close();
            }
        };
    }

    /**
     * Reports a connection without TLS, and returns whether it did. The pipeline tells, also right after the connection's end. One without an
     * address was ended by BookKeeper, since the bookie does not serve yet, or any more (RejectRequestHandler).
     */
    private static boolean reportOnce(BookieConnectionPeer peer, AtomicBoolean reported) {
        boolean first = peer.getRemoteAddr() != null && !peer.isSecure() && reported.compareAndSet(false, true);
        if (first) {
            REFUSALS.tell(peer.getRemoteAddr(), "a connection that does not ask for TLS");
        }
        return first;
    }
}
