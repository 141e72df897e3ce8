package org.apache.zookeeper;

import java.io.IOException;
import java.lang.reflect.Field;
import java.net.InetSocketAddress;
import java.util.List;
import org.apache.jute.Record;
import org.apache.zookeeper.ZooDefs.OpCode;
import org.apache.zookeeper.client.StaticHostProvider;
import org.apache.zookeeper.client.ZKClientConfig;
import org.apache.zookeeper.proto.ReplyHeader;
import org.apache.zookeeper.proto.RequestHeader;
import org.apache.zookeeper.server.Request;

/** Stands between a session of ZooKeeper's client and its connection, and sees each request, whichever method it was made by. */
public final class InterposedConnection extends ClientCnxn {

    /** Sends a request, does not send it, or forgets its answer. */
    @FunctionalInterface
    public interface Between {

        /**
         * Called in the thread that asks.
         *
         * @param operation ZooKeeper's name of it, as {@code setData}
         * @return the answer, or null for a lost connection
         */
        ReplyHeader ask(String operation, String path, boolean changes, Sending sending) throws InterruptedException;
    }

    /** Sends the request and waits for its answer. */
    @FunctionalInterface
    public interface Sending {

        ReplyHeader send() throws InterruptedException;
    }

    private final ClientCnxn real;
    private final Between between;

    private InterposedConnection(ClientCnxn real, Between between) throws IOException {
        super(null, new StaticHostProvider(List.of(new InetSocketAddress("127.0.0.1", 1))), 1_000, new ZKClientConfig(),
                event -> { }, null, false);
        this.real = real;
        this.between = between;
    }

    /** Puts one in between, for as long as the session lives; the second time nothing is done. */
    public static void into(ZooKeeper session, Between between) {
        try {
            Field connection = ZooKeeper.class.getDeclaredField("cnxn");
            connection.setAccessible(true);
            synchronized (session) {
                ClientCnxn real = (ClientCnxn) connection.get(session);
                if (!(real instanceof InterposedConnection)) {
                    connection.set(session, new InterposedConnection(real, between));
                }
            }
        } catch (ReflectiveOperationException | IOException error) {
            throw new IllegalStateException("ZooKeeper's client has its connection elsewhere in this version", error);
        }
    }

    /** The connection of a session as it was. */
    public static void closeReal(ZooKeeper session) throws IOException {
        ClientCnxn connection = session.cnxn;
        (connection instanceof InterposedConnection own ? own.real : connection).close();
    }

    @Override
    public ReplyHeader submitRequest(RequestHeader header, Record request, Record response, ZooKeeper.WatchRegistration watch)
            throws InterruptedException {
        return submitRequest(header, request, response, watch, null);
    }

    @Override
    public ReplyHeader submitRequest(RequestHeader header, Record request, Record response, ZooKeeper.WatchRegistration watch,
            WatchDeregistration noWatch) throws InterruptedException {
        ReplyHeader answer = between.ask(Request.op2String(header.getType()), path(request), changes(header.getType()),
                () -> real.submitRequest(header, request, response, watch, noWatch));
        return answer != null ? answer : new ReplyHeader(0, 0, KeeperException.Code.CONNECTIONLOSS.intValue());
    }

    @Override
    public Packet queuePacket(RequestHeader header, ReplyHeader reply, Record request, Record response, AsyncCallback callback,
            String clientPath, String serverPath, Object context, ZooKeeper.WatchRegistration watch, WatchDeregistration noWatch) {
        throw new UnsupportedOperationException("the nemesis knows no asynchronous requests of HerdDB to ZooKeeper, and here is one: "
                + Request.op2String(header.getType()) + " " + clientPath);
    }

    private static boolean changes(int type) {
        return switch (type) {
            case OpCode.exists, OpCode.getData, OpCode.getACL, OpCode.getChildren, OpCode.getChildren2, OpCode.sync -> false;
            default -> true;
        };
    }

    private static String path(Record request) {
        if (request instanceof MultiOperationRecord several) {
            return several.iterator().next().getPath();
        }
        try {
            return (String) request.getClass().getMethod("getPath").invoke(request);
        } catch (ReflectiveOperationException none) {
            return "";
        }
    }

    @Override
    ZKWatchManager getWatcherManager() {
        return real.getWatcherManager();
    }

    @Override
    ZooKeeper.States getState() {
        return real.getState();
    }

    @Override
    public long getSessionId() {
        return real.getSessionId();
    }

    @Override
    public void close() throws IOException {
        real.close();
    }
}
