package io.herdkeeper.node.testing;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The way to a port of this machine, which can be pulled: what is sent then arrives nowhere, and nobody is told, as in a partition. */
public final class Cable implements AutoCloseable {

    private final ServerSocket near;
    private final int far;
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();
    private boolean pulled;

    /** A way to {@code address}, as {@code host:port}. */
    public Cable(String address) throws IOException {
        far = Integer.parseInt(address.substring(address.lastIndexOf(':') + 1));
        near = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        start(this::accept);
    }

    /** Its near end. */
    public String address() {
        return "127.0.0.1:" + near.getLocalPort();
    }

    public synchronized void pull() {
        pulled = true;
    }

    public synchronized void plug() {
        pulled = false;
        notifyAll();
    }

    /** Ends all connections, as both ends notice. */
    public void cut() throws IOException {
        for (Socket end : open) {
            end.close();
        }
    }

    @Override
    public void close() throws IOException {
        plug();
        near.close();
    }

    private void accept() throws IOException {
        while (!near.isClosed()) {
            Socket inner = near.accept();
            start(() -> connect(inner));
        }
    }

    private void connect(Socket inner) throws IOException, InterruptedException {
        open.add(inner);
        awaitPlugged();
        Socket outer = new Socket();
        open.add(outer);
        outer.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), far));
        start(() -> carry(inner, outer));
        start(() -> carry(outer, inner));
    }

    private void carry(Socket from, Socket to) throws IOException, InterruptedException {
        try (from; to) {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            byte[] buffer = new byte[8192];
            for (int length = in.read(buffer); length >= 0; length = in.read(buffer)) {
                awaitPlugged();
                out.write(buffer, 0, length);
            }
        } finally {
            open.remove(from);
            open.remove(to);
        }
    }

    private synchronized void awaitPlugged() throws InterruptedException {
        while (pulled) {
            wait();
        }
    }

    @FunctionalInterface
    private interface Work {

        void run() throws IOException, InterruptedException;
    }

    private static void start(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (IOException closed) {
                // an end was closed, and with it the connection
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        }, "cable");
        thread.setDaemon(true);
        thread.start();
    }
}
