package io.herdkeeper.node.tls;

import io.herdkeeper.node.refusals.Refusals;
import io.herdkeeper.node.refusals.Refusals.Reason;
import io.netty.channel.Channel;
import io.netty.handler.ssl.NotSslRecordException;
import io.netty.handler.ssl.SslHandler;
import java.net.SocketAddress;
import javax.net.ssl.SSLException;

/** Has TLS handshakes that fail told. */
final class Handshakes {

    private Handshakes() {
    }

    static void tell(SslHandler tls, Channel client) {
        SocketAddress peer = client.remoteAddress(); // a closed channel does not know it
        tls.handshakeFuture().addListener(done -> {
            Throwable error = done.cause();
            if (error instanceof NotSslRecordException) {
                // its message has what was sent
                Refusals.tell(Reason.PLAINTEXT, peer, "plain text on a port that speaks TLS");
            } else if (error instanceof SSLException) {
                Refusals.tell(Reason.TLS, peer, "the TLS handshake failed: " + error.getMessage());
            }
            // else the client has gone
        });
    }
}
