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
        BookieAuthProvider certificates = super.newProvider(peer, completed);
        AtomicBoolean told = new AtomicBoolean();
        Runnable end = () -> {
            if (isRefused(peer, told)) {
                peer.disconnect();
            }
        };
        Future<?> deadline = GlobalEventExecutor.INSTANCE.schedule(end, patience.toMillis(), TimeUnit.MILLISECONDS);
        return new BookieAuthProvider() {
            @Override
            public void onProtocolUpgrade() {
                certificates.onProtocolUpgrade();
            }

            @Override
            public void process(AuthToken message, GenericCallback<AuthToken> answer) {
                certificates.process(message, answer);
            }

            @Override
            public void close() {
                deadline.cancel(false);
                isRefused(peer, told);
                certificates.close();
            }
        };
    }

    /** Tells of a connection without TLS, once. Whether it has TLS is known from its pipeline, also right after its end. */
    private static boolean isRefused(BookieConnectionPeer peer, AtomicBoolean told) {
        boolean refused = !peer.isSecure() && told.compareAndSet(false, true);
        if (refused) {
            REFUSALS.tell(peer.getRemoteAddr(), "a connection that does not ask for TLS");
        }
        return refused;
    }
}
