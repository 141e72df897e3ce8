package io.herdkeeper.node.tls;

import io.herdkeeper.node.refusals.Refusals;
import io.herdkeeper.node.refusals.Refusals.Reason;
import io.herdkeeper.node.tls.SqlPortTls.Plaintext;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.ByteToMessageDecoder;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslHandler;
import java.util.List;

/**
 * Decides from the first byte of a connection whether it is TLS, and then removes itself.
 *
 * <p>TLS begins with the type of a handshake record (RFC 8446, 5.1). HerdDB begins with the highest byte of a length, which would mean a
 * login of 369 MB. Netty's own test ({@code SslUtils.getEncryptedPacketLength}) takes HerdDB's version 3 in the fifth byte for SSL 2, and
 * waits for more.
 */
final class FirstByte extends ByteToMessageDecoder {

    private static final int HANDSHAKE = 22;

    private final SslContext context;
    private final Plaintext plaintext;

    FirstByte(SslContext context, Plaintext plaintext) {
        this.context = context;
        this.plaintext = plaintext;
    }

    @Override
    protected void decode(ChannelHandlerContext connection, ByteBuf received, List<Object> decoded) {
        if (!received.isReadable()) {
            return;
        }
        if (received.getUnsignedByte(received.readerIndex()) == HANDSHAKE) {
            SslHandler tls = context.newHandler(connection.alloc());
            connection.pipeline().replace(this, "tls", tls);
            Handshakes.tell(tls, connection.channel());
            return;
        }
        switch (plaintext) {
            case ACCEPTED -> connection.pipeline().remove(this);
            case REFUSED -> {
                Refusals.tell(Reason.PLAINTEXT, connection.channel().remoteAddress(), "plain text on the SQL port, which demands TLS");
                received.skipBytes(received.readableBytes());
                connection.close();
            }
            default -> throw new IllegalStateException(plaintext.name());
        }
    }
}
