package io.herdkeeper.zookeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.OpCode;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.server.DataTree;
import org.apache.zookeeper.server.Request;
import org.apache.zookeeper.server.persistence.FileTxnSnapLog;
import org.apache.zookeeper.server.quorum.QuorumPeerMain;
import org.apache.zookeeper.server.util.ZxidUtils;
import org.apache.zookeeper.txn.CreateTxn;
import org.apache.zookeeper.txn.TxnHeader;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Stores as a kill leaves them, written by ZooKeeper's own classes. Each begins with a snapshot and a transaction of the first epoch. */
class MemberStartTest {

    private static final long PATIENCE = Duration.ofMinutes(2).toNanos();
    private static final Set<Integer> GIVEN_PORTS = new HashSet<>();

    @TempDir
    Path folder;

    private Path files;
    private Path logs;
    private int client;

    @BeforeEach
    void aMemberThatFollowedItsFirstLeader() throws Exception {
        files = folder.resolve("store/version-2");
        logs = files;
        client = freePort();
        configure("server.1=127.0.0.1:%d:%d:participant;127.0.0.1:%d\n".formatted(freePort(), freePort(), client));
        snapshot(1, 1);
        log(1, 2);
        epochs(1, 1);
        Files.writeString(folder.resolve("store/myid"), "1\n");
    }

    @Test
    void theTransactionsOfANewLeaderBringItsEpoch() throws Exception {
        log(2, 1);
        epochs(1, 2);
        assertEquals(2, epochAfterwards());
    }

    @Test
    void theSnapshotOfANewLeaderBringsItsEpoch() throws Exception {
        snapshot(2, 7);
        epochs(1, 2);
        assertEquals(2, epochAfterwards());
    }

    @Test
    void theFirstSnapshotOfAnEmptyMemberBringsItsEpoch() throws Exception {
        epochs(-1, 1);
        assertEquals(1, epochAfterwards());
    }

    @Test
    void theEpochIsThatOfTheLastTransactionAndNotOfTheLeader() throws Exception {
        log(2, 1);
        epochs(1, 3);
        assertEquals(2, epochAfterwards());
    }

    @Test
    void transactionsCountThatAreInAFolderOfTheirOwn() throws Exception {
        Path own = folder.resolve("logs/version-2");
        Files.createDirectories(own);
        for (Path log : listed(files, "log.")) {
            Files.move(log, own.resolve(log.getFileName()));
        }
        logs = own;
        Files.writeString(folder.resolve("zoo.cfg"), "dataLogDir=" + own.getParent() + "\n", StandardOpenOption.APPEND);
        log(2, 1);
        epochs(1, 2);
        assertEquals(2, epochAfterwards());
    }

    @Test
    void anEpochThatWasBeingWrittenIsReplaced() throws Exception {
        log(2, 1);
        epochs(1, 2);
        Files.writeString(files.resolve("currentEpoch.tmp"), "");
        assertEquals(2, epochAfterwards());
        assertFalse(Files.exists(files.resolve("currentEpoch.tmp")));
    }

    @Test
    void aHalfWrittenSnapshotBringsNoEpoch() throws Exception {
        Path snapshot = snapshot(2, 7);
        cut(snapshot, Files.size(snapshot) / 2);
        epochs(1, 2);
        assertUntouched();
    }

    @Test
    void aSnapshotThatLooksWholeAndIsNotBringsNoEpoch() throws Exception {
        try (RandomAccessFile snapshot = new RandomAccessFile(snapshot(2, 7).toFile(), "rw")) {
            snapshot.seek(snapshot.length() / 2);
            snapshot.write(~snapshot.read());
        }
        epochs(1, 2);
        assertUntouched();
    }

    @Test
    void aHalfWrittenTransactionBringsNoEpoch() throws Exception {
        log(2, 1);
        cut(logs.resolve("log.200000001"), 40);
        epochs(1, 2);
        assertUntouched();
    }

    @Test
    void anEpochThatWasNotAcceptedIsLeftToZooKeeper() throws Exception {
        log(3, 1);
        epochs(1, 2);
        assertUntouched();
    }

    @Test
    void aStoreWhoseSynchronisationWasNotInterruptedIsLeftAsItIs() throws Exception {
        assertUntouched();
        epochs(1, 2); // the leader of the second was lost before it told anything
        assertUntouched();
        epochs(2, 2); // it told nothing that is new
        assertUntouched();
    }

    @Test
    void aStoreWithoutEpochsIsLeftToZooKeeper() throws Exception {
        log(2, 1);
        for (String missing : List.of("currentEpoch", "acceptedEpoch")) {
            epochs(1, 2);
            Files.delete(files.resolve(missing));
            assertUntouched();
        }
    }

    @Test
    void aStoreThatCanNotBeReadIsLeftToZooKeeper() throws Exception {
        log(2, 1);
        epochs(1, 2);
        Files.writeString(logs.resolve("log.200000001"), "not a log of transactions");
        assertUntouched();
        Files.writeString(files.resolve("currentEpoch"), "");
        assertUntouched();
    }

    @Test
    void aMemberServesFromAStoreFromWhichZooKeeperAloneDoesNotStart() throws Exception {
        log(2, 1);
        epochs(1, 2);
        Process alone = started(QuorumPeerMain.class);
        try {
            assertTrue(alone.waitFor(PATIENCE, TimeUnit.NANOSECONDS), "ZooKeeper itself starts: nothing is to be finished any more");
        } finally {
            alone.destroyForcibly().waitFor();
        }
        Process member = started(MemberStart.class);
        try {
            assertTrue(tells(member, "/2-1"), Files.readString(folder.resolve("said")));
        } finally {
            member.destroyForcibly().waitFor();
        }
    }

    private long epochAfterwards() throws IOException {
        MemberStart.finishSynchronisation(folder.resolve("zoo.cfg"));
        return Long.parseLong(Files.readString(files.resolve("currentEpoch")));
    }

    private void assertUntouched() throws IOException {
        Map<Path, String> before = stored();
        MemberStart.finishSynchronisation(folder.resolve("zoo.cfg"));
        assertEquals(before, stored());
    }

    /** Each file of the store with its content and age. */
    private Map<Path, String> stored() throws IOException {
        Map<Path, String> found = new TreeMap<>();
        for (Path file : listed(files, "")) {
            found.put(file, Files.getLastModifiedTime(file) + " " + new String(Files.readAllBytes(file)).hashCode());
        }
        return found;
    }

    private static List<Path> listed(Path folder, String prefix) throws IOException {
        try (Stream<Path> found = Files.list(folder)) {
            return found.filter(file -> file.getFileName().toString().startsWith(prefix)).toList();
        }
    }

    private void configure(String member) throws IOException {
        Files.writeString(folder.resolve("zoo.cfg"), """
                dataDir=%s
                tickTime=2000
                initLimit=10
                syncLimit=5
                standaloneEnabled=false
                admin.enableServer=false
                preAllocSize=64
                %s""".formatted(files.getParent(), member));
    }

    private void epochs(long current, long accepted) throws IOException {
        Files.writeString(files.resolve("currentEpoch"), Long.toString(current));
        Files.writeString(files.resolve("acceptedEpoch"), Long.toString(accepted));
    }

    private Path snapshot(long epoch, long counter) throws IOException {
        DataTree tree = new DataTree();
        tree.lastProcessedZxid = ZxidUtils.makeZxid(epoch, counter);
        return store().save(tree, new ConcurrentHashMap<>(), true).toPath();
    }

    /** Logs the creation of /epoch-counter. */
    private void log(long epoch, long counter) throws IOException {
        long zxid = ZxidUtils.makeZxid(epoch, counter);
        CreateTxn created = new CreateTxn("/" + epoch + "-" + counter, new byte[0], Ids.OPEN_ACL_UNSAFE, false, 1);
        FileTxnSnapLog store = store();
        store.append(new Request(1, 1, OpCode.create, new TxnHeader(1, 1, zxid, 1, OpCode.create), created, zxid));
        store.commit();
        store.close();
    }

    private FileTxnSnapLog store() throws IOException {
        return new FileTxnSnapLog(logs.getParent().toFile(), files.getParent().toFile());
    }

    private static void cut(Path file, long length) throws IOException {
        try (RandomAccessFile open = new RandomAccessFile(file.toFile(), "rw")) {
            open.setLength(length);
        }
    }

    private Process started(Class<?> main) throws IOException {
        return new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp", System.getProperty("java.class.path"),
                "-Dzookeeper.db.autocreate=false", main.getName(), folder.resolve("zoo.cfg").toString())
                .redirectErrorStream(true).redirectOutput(folder.resolve("said").toFile()).start();
    }

    /** Whether a member tells, before it ends, that a znode is there. */
    private boolean tells(Process member, String path) throws Exception {
        long deadline = System.nanoTime() + PATIENCE;
        try (ZooKeeper asking = new ZooKeeper("127.0.0.1:" + client, 10_000, event -> { })) {
            while (member.isAlive() && System.nanoTime() < deadline) {
                try {
                    return asking.exists(path, false) != null;
                } catch (KeeperException.ConnectionLossException notYet) {
                    Thread.sleep(100);
                }
            }
            return false;
        }
    }

    /** Another one each time, below the ports that the kernel gives to clients, one of which might get it before the member listens. */
    private static int freePort() {
        while (true) {
            int port = ThreadLocalRandom.current().nextInt(15_000, 32_000);
            try {
                new ServerSocket(port, 1, InetAddress.getLoopbackAddress()).close();
                if (GIVEN_PORTS.add(port)) {
                    return port;
                }
            } catch (IOException taken) {
                // the next one may be free
            }
        }
    }
}
