package io.herdkeeper.node.tls;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.FixedRecvByteBufAllocator;
import io.netty.channel.RecvByteBufAllocator;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.ssl.SslHandler;
import io.netty.handler.timeout.WriteTimeoutHandler;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/**
 * A port that speaks TLS, before a server in this process that does not. What one side sends is read only once the other side has taken
 * what was sent before.
 *
 * <p>Java's own HTTPS server (17) looks up the client's name in the DNS for each connection, in a thread that requests need. Its timer
 * closes a slow connection by writing to it, and stops if that write blocks. Here one thread serves all connections and waits for none.
 */
public final class TlsFront {

    /** A client that has not finished its handshake by then is disconnected. */
    private static final Duration LONGEST_HANDSHAKE = Duration.ofSeconds(10);

    /** So is a client that takes nothing of its answer for so long. A Checkpoint may rest while it writes what it has read. */
    private static final Duration LONGEST_UNREAD = Duration.ofMinutes(5);

    /** How much of either side is read at once. No more data waits in memory for a client that does not read. */
    private static final RecvByteBufAllocator PIECE = new FixedRecvByteBufAllocator(8 << 10);

    private final RenewedCertificate certificate;
    private final InetSocketAddress behind;
    private final Duration longestUnread;
    /** By the address of the connection to the server behind, that of the client. */
    private final Map<SocketAddress, SocketAddress> clients = new ConcurrentHashMap<>();
    private final EventLoopGroup thread = new NioEventLoopGroup(1, new DefaultThreadFactory("tls-front", true));
    private final Channel port;

    /**
     * Listens at once.
     *
     * @param listen where; port 0 takes a free one
     * @param behind the server's address
     */
    public TlsFront(RenewedCertificate certificate, InetSocketAddress listen, InetSocketAddress behind) throws IOException {
        this(certificate, listen, behind, LONGEST_UNREAD);
    }

    TlsFront(RenewedCertificate certificate, InetSocketAddress listen, InetSocketAddress behind, Duration longestUnread)
            throws IOException {
        this.certificate = certificate;
        this.behind = behind;
        this.longestUnread = longestUnread;
        ChannelFuture bound = new ServerBootstrap().group(thread).channel(NioServerSocketChannel.class)
                .childOption(ChannelOption.AUTO_READ, false)
                .childOption(ChannelOption.TCP_NODELAY, true)
                .childOption(ChannelOption.RCVBUF_ALLOCATOR, PIECE)
                .childHandler(new ChannelInitializer<SocketChannel>() {
                    @Override
                    protected void initChannel(SocketChannel client) {
                        accept(client);
                    }
                }).bind(listen).awaitUninterruptibly();
        if (!bound.isSuccess()) {
            thread.shutdownGracefully();
            throw new IOException("can't listen on " + listen, bound.cause());
        }
        port = bound.channel();
    }

    /** The bound port. */
    public int port() {
        return ((InetSocketAddress) port.localAddress()).getPort();
    }

    /** Whose connection it is that reaches the server behind from an address; that address itself if it is nobody's. */
    public SocketAddress client(SocketAddress inner) {
        return clients.getOrDefault(inner, inner);
    }

    /** Closes the port and all connections. */
    public void close() {
        thread.shutdownGracefully(0, 1, TimeUnit.SECONDS);
    }

    private void accept(SocketChannel client) {
        SslHandler tls = certificate.context().newHandler(client.alloc());
        tls.setHandshakeTimeoutMillis(LONGEST_HANDSHAKE.toMillis());
        client.pipeline().addLast(tls, new WriteTimeoutHandler(longestUnread.toMillis(), TimeUnit.MILLISECONDS));
        Handshakes.tell(tls, client);
        ChannelFuture connected = new Bootstrap().group(client.eventLoop()).channel(NioSocketChannel.class)
                .option(ChannelOption.AUTO_READ, false)
                .option(ChannelOption.TCP_NODELAY, true)
                .option(ChannelOption.RCVBUF_ALLOCATOR, PIECE)
                .handler(new Relay(client)).connect(behind);
        client.pipeline().addLast(new Relay(connected.channel()));
        connected.addListener((ChannelFutureListener) done -> {
            if (done.isSuccess()) {
                SocketAddress inner = done.channel().localAddress();
                clients.put(inner, client.remoteAddress());
                done.channel().closeFuture().addListener(any -> clients.remove(inner));
                client.read();
                done.channel().read();
            } else {
                client.close();
            }
        });
    }

    /** One direction: what its channel reads is written to the other one, and closed with it. */
    private static final class Relay extends ChannelInboundHandlerAdapter {

        private final Channel other;

        Relay(Channel other) {
            this.other = other;
        }

        @Override
        public void channelRead(ChannelHandlerContext own, Object received) {
            other.writeAndFlush(received).addListener((ChannelFutureListener) written -> {
                if (written.isSuccess()) {
                    own.read();
                } else {
                    own.close();
                }
            });
        }

        @Override
        public void channelWritabilityChanged(ChannelHandlerContext own) {
            // Data never fills the buffer (PIECE). TLS's own answers to a client that sends and reads nothing do.
            if (!own.channel().isWritable()) {
                own.close();
            }
        }

        @Override
        public void channelInactive(ChannelHandlerContext own) {
            if (other.isActive()) {
                other.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(ChannelFutureListener.CLOSE);
            } else {
                other.close();
            }
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext own, Throwable error) {
            own.close();
        }
    }
}
