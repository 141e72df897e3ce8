package io.herdkeeper.node.nemesis;

import herddb.core.TableSpaceManager;
import herddb.file.FileDataStorageManager;
import herddb.log.LogEntry;
import herddb.log.LogSequenceNumber;
import herddb.metadata.MetadataStorageManagerException;
import herddb.model.TableSpace;
import herddb.server.Server;
import herddb.server.ServerConfiguration;
import io.herdkeeper.node.NodeServer;
import io.herdkeeper.node.evidence.LocalCopies;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.leadership.ActivatorWaker;
import io.herdkeeper.node.leadership.LeadershipMetadata;
import io.herdkeeper.node.log.InterposedLogs;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.release.LogRelease;
import io.herdkeeper.node.status.HerdEvents;
import io.herdkeeper.node.status.NodeStatus;
import io.herdkeeper.node.status.NodeStatus.Phase;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import java.lang.reflect.Field;
import java.nio.file.Path;
import java.time.Clock;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import org.apache.bookkeeper.meta.zk.ZKMetadataDriverBase;
import org.apache.bookkeeper.stats.NullStatsProvider;

/** One process of a node, put together as its program does, with the nemesis at its rims. It has no ports. */
final class NemesisNode {

    /** HerdDB's default tablespace is the one that the stories tell of: each node has it from the beginning. */
    static final String TABLESPACE = TableSpace.DEFAULT;
    private static final int SESSION_MILLIS = 20_000;
    static final Executor REMOVALS = Executors.newCachedThreadPool(work -> {
        Thread thread = new Thread(work, "removal");
        thread.setDaemon(true);
        return thread;
    });

    private final Life life;
    private final ZooKeeperRim zooKeeper;
    private final InterposedLogs logs;
    private final Server server;
    private final NodeStatus status;
    private final LocalCopies copies;
    private final LogRelease release;
    /** All threads of this process, so that they can be found. */
    private final ThreadGroup threads;
    private ActivatorWaker waker;

    private NemesisNode(Life life, ZooKeeperRim zooKeeper, InterposedLogs logs, Server server, ThreadGroup threads) {
        this.life = life;
        this.zooKeeper = zooKeeper;
        this.logs = logs;
        this.server = server;
        this.threads = threads;
        // Heard of nothing: the failures of all nodes of this JVM are told in one place.
        this.status = new NodeStatus(server, new HerdEvents());
        this.copies = new LocalCopies(server, Clock.systemUTC());
        this.release = new LogRelease(server, Clock.systemUTC());
    }

    /** Made and not started; {@code folder} is what its node had before. */
    static NemesisNode create(Life life, String root, Path folder) throws Exception {
        ThreadGroup threads = new ThreadGroup(life.name());
        return in(threads, () -> {
            ServerConfiguration configuration = Node.configuration(life.node(), root, folder)
                    .set("server.network.enabled", false)
                    .set(ServerConfiguration.PROPERTY_BOOKKEEPER_MAX_IDLE_TIME, 0)
                    .set(ServerConfiguration.PROPERTY_BOOKKEEPER_LEDGERS_PATH, Bookies.LEDGERS_PATH)
                    .set("bookkeeper.speculativeReadTimeout", 250)
                    .set("bookkeeper.firstSpeculativeReadLACTimeout", 250)
                    .set("bookkeeper.numWorkerThreads", 1)
                    .set("bookkeeper.numIOThreads", 1);
            ZooKeeperRim zooKeeper = new ZooKeeperRim(life, root);
            LeadershipMetadata metadata = zooKeeper.metadata(configuration, SESSION_MILLIS);
            InterposedLogs logs = new InterposedLogs(metadata, configuration, beside(life), client -> BookKeeperRim.into(client, life));
            Server server = NodeServer.create(configuration, new NullStatsProvider(), null, metadata, logs);
            onDisk((FileDataStorageManager) server.getManager().getDataStorageManager(), new Disk(life));
            return new NemesisNode(life, zooKeeper, logs, server, threads);
        });
    }

    private static void onDisk(FileDataStorageManager files, Disk disk) throws ReflectiveOperationException {
        Field folder = FileDataStorageManager.class.getDeclaredField("baseDirectory");
        folder.setAccessible(true);
        folder.set(files, disk.seen((Path) folder.get(files)));
    }

    private static InterposedLogs.Beside beside(Life life) {
        return new InterposedLogs.Beside() {
            @Override
            public void step(String what, Runnable step) {
                Life.Visit visit = life.begin(new Call(Kind.STEP, what, true));
                step.run();
                visit.isLost();
            }

            @Override
            public <E extends Exception> void apply(LogSequenceNumber position, LogEntry entry, InterposedLogs.Applying<E> applying) throws E {
                String what = "entry " + life.ledger(position.ledgerId) + "," + position.offset + " of type " + entry.type;
                Life.Visit visit = life.begin(new Call(Kind.APPLY, what, true));
                if (visit.fails()) {
                    throw new IllegalStateException("can't be applied");
                }
                applying.run();
                visit.isLost();
            }

            @Override
            public void drops(long ledger) {
                life.keep(ledger);
            }
        };
    }

    /** Starts it, as its program does; a power cut in between ends that, and so does what a call throws. */
    void start() throws Exception {
        in(threads, () -> {
            server.start();
            waker = new ActivatorWaker(server, status);
            waker.start();
            status.enter(Phase.RUNNING);
            return null;
        });
    }

    Life life() {
        return life;
    }

    Server server() {
        return server;
    }

    /** Asks the activator to look at once, as the operator does. */
    void wake() {
        if (waker != null) {
            waker.wake();
        }
    }

    /** The tablespace as it runs here, or null. */
    TableSpaceManager tablespace() {
        return server.getManager().getTableSpaceManager(TABLESPACE);
    }

    NodeCommitLog log() {
        TableSpaceManager tablespace = tablespace();
        return tablespace != null && tablespace.getLog() instanceof NodeCommitLog log ? log : null;
    }

    boolean leads() {
        TableSpaceManager tablespace = tablespace();
        return !life.isDead() && tablespace != null && tablespace.isLeader() && !tablespace.isClosed() && !tablespace.isFailed();
    }

    boolean follows() {
        TableSpaceManager tablespace = tablespace();
        return !life.isDead() && tablespace != null && !tablespace.isLeader() && !tablespace.isClosed() && !tablespace.isFailed();
    }

    /** As the operator has a follower write its tables to its disk. */
    void checkpointAsAsked() throws Exception {
        copies.checkpoint(tablespace());
    }

    /** As the activator does from time to time, whatever the role. */
    void checkpointAsTimed() throws Exception {
        server.getManager().checkpoint();
    }

    /** As its program does every ten seconds, in one thread: tells what its disk has, and drops ledgers where it leads. */
    synchronized void release() throws MetadataStorageManagerException, InterruptedException {
        if (waker != null && !life.isDead()) {
            release.look();
        }
    }

    /** Has ZooKeeper end all sessions of this process. */
    void expire() throws Exception {
        zooKeeper.expire();
        if (logs.getBookKeeper() != null) {
            BookKeeperForTests.running().expire(((ZKMetadataDriverBase) logs.getBookKeeper().getMetadataClientDriver()).getZk().getSessionId());
        }
    }

    /** The end of an idle log's entries, for who follows it. */
    void pushLastEntry() {
        TableSpaceManager tablespace = tablespace();
        if (leads() && tablespace != null) {
            InterposedLogs.pushLastEntry(logs, tablespace.getTableSpaceUUID());
        }
    }

    /** Stops it as SIGTERM does; ends once the activator has, which stops the tablespace and closes what goes outside. */
    void stop() throws Exception {
        status.enter(Phase.STOPPING);
        Thread activator = HerdInternals.activator(server.getManager());
        Thread stopping = new Thread(threads, () -> server.getManager().close());
        stopping.setDaemon(true);
        stopping.start();
        activator.join();
    }

    /** Takes away what a power cut leaves in this JVM (threads, sessions, connections), beside: HerdDB waits for some seconds there. */
    void remove() {
        life.kill();
        REMOVALS.execute(this::removeNow);
    }

    private void removeNow() {
        status.enter(Phase.STOPPING);
        ignoring(() -> in(threads, () -> {
            server.close();
            return null;
        }));
        ignoring(server.getMetadataStorageManager()::close);
        ignoring(zooKeeper::close);
        ignoring(logs::close);
        endWaker();
    }

    /** It waits for the end of its process. No other thread may be interrupted: those of ZooKeeper's client would never rest again. */
    private void endWaker() {
        Thread[] left = new Thread[threads.activeCount() + 16];
        int count = threads.enumerate(left);
        for (int each = 0; each < count; each++) {
            if (left[each].getName().equals("activator-waker")) {
                left[each].interrupt();
            }
        }
    }

    /** Something that is tried, and may have been done before. */
    @FunctionalInterface
    interface Try {

        void it() throws Exception;
    }

    private static void ignoring(Try work) {
        try {
            work.it();
        } catch (Exception | PowerCut ended) {
            // it had ended
        }
    }

    /** Does something in a thread of the group, whose threads are the group's, too. */
    private static <T> T in(ThreadGroup threads, Callable<T> work) throws Exception {
        CompletableFuture<T> result = new CompletableFuture<>();
        Thread thread = new Thread(threads, () -> {
            try {
                result.complete(work.call());
            } catch (Throwable error) {
                result.completeExceptionally(error);
            }
        }, "node " + threads.getName());
        thread.setDaemon(true);
        thread.start();
        try {
            return result.get();
        } catch (ExecutionException error) {
            if (error.getCause() instanceof Exception exception) {
                throw exception;
            }
            throw error;
        }
    }
}
