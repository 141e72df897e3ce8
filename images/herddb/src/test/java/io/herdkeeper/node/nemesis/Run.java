package io.herdkeeper.node.nemesis;

import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.metadata.MetadataStorageManagerException;
import herddb.model.StatementEvaluationContext;
import herddb.model.TableSpace;
import herddb.model.TransactionContext;
import herddb.model.TransactionResult;
import herddb.model.commands.BeginTransactionStatement;
import io.herdkeeper.node.testing.BookKeeperForTests;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Two nodes, their clients, their operator and their nemesis: one case from its beginning to its verdict. */
final class Run implements AutoCloseable, Nemesis.Listener {

    /** Written and acknowledged before the story; the values are those that must be there at its end. */
    private static final Map<Integer, String> BEFORE = Map.of(1, "updated", 3, "first", 4, "first", 5, "behind the checkpoint", 60, "committed");
    static final int DELETED = 2;
    /** The row of a transaction that is open when the story begins. */
    static final int OPEN = 50;

    private static final Duration SETUP = Duration.ofSeconds(180);
    /** What is under a fault may take its time, and the story goes on without it. */
    static final Duration STEP = Duration.ofMillis(2_500);
    private static final Duration MOMENT = Duration.ofMillis(120);
    private static final Duration SERVES = Duration.ofSeconds(120);
    private static final long LONGEST_PAUSE_MILLIS = 20;

    private final Nemesis nemesis;
    private final boolean one;
    /** For each step. Without a fault each comes to its end, however slow the machine is, so that each recording has all points. */
    private final Duration patience;
    private final ExecutorService threads = Executors.newCachedThreadPool(Run::daemon);
    private final Clients clients = new Clients(threads);
    private final ZookeeperMetadataStorageManager operator;
    private final String root;
    private final Map<String, NemesisNode> nodes = new LinkedHashMap<>();
    private final Map<String, Integer> processes = new LinkedHashMap<>();
    private final Map<String, Path> folders = new LinkedHashMap<>();
    private final List<NemesisNode> made = new CopyOnWriteArrayList<>();
    private final List<String> holes = new CopyOnWriteArrayList<>();
    /** The strikes that are being dealt with. */
    private final AtomicInteger busy = new AtomicInteger();
    /** All of them. */
    private final AtomicInteger struck = new AtomicInteger();
    private final CountDownLatch ended = new CountDownLatch(1);
    private volatile Map<Integer, String> before = Map.of();
    private volatile long transaction;
    private volatile String uuid;

    Run(Case what) throws Exception {
        one = what.strikes().size() < 2;
        patience = what.strikes().isEmpty() ? SETUP : STEP;
        nemesis = new Nemesis(what.strikes(), this);
        Bookies.running();
        BookKeeperForTests servers = BookKeeperForTests.running();
        root = servers.newRoot();
        operator = new ZookeeperMetadataStorageManager(servers.zooKeeperAddress(), 20_000, root);
    }

    private static Thread daemon(Runnable work) {
        Thread thread = new Thread(work, "run");
        thread.setDaemon(true);
        return thread;
    }

    /** A tablespace that nobody has booted yet, and no node. */
    void setUpRecord() throws Exception {
        operator.start();
        TableSpace record = TableSpace.builder().name(NemesisNode.TABLESPACE).leader("n0").replica("n0").replica("n1")
                .expectedReplicaCount(1).maxLeaderInactivityTime(0).build();
        uuid = record.uuid;
        operator.registerTableSpace(record);
        for (String name : List.of("n0", "n1")) {
            folders.put(name, BookKeeperForTests.running().newFolder());
        }
    }

    /** Two nodes of which one leads and one follows, both with a checkpoint that the log goes beyond. */
    void setUpNodes() throws Exception {
        setUpRecord();
        before = BEFORE;
        run("n0");
        run("n1");
        NemesisNode leader = node("n0");
        NemesisNode follower = node("n1");
        require("the first node leads", SETUP, leader::leads);
        acknowledged(clients.createTable(leader));
        for (int key = 1; key <= 4; key++) {
            acknowledged(clients.insert(leader, key, "first", 0));
        }
        leader.log().closeLedger(-1);
        acknowledged(clients.update(leader, 1, "updated"));
        acknowledged(clients.delete(leader, DELETED));
        long committed = begin(leader);
        acknowledged(clients.insert(leader, 60, "committed", committed));
        acknowledged(clients.commit(leader, 60, committed));
        leader.pushLastEntry();
        require("the second node follows", SETUP, () -> follower.follows() && Rows.of(follower).containsKey(60));
        leader.checkpointAsTimed();
        follower.checkpointAsAsked();
        acknowledged(clients.insert(leader, 5, "behind the checkpoint", 0));
        transaction = begin(leader);
        acknowledged(clients.insert(leader, OPEN, "never committed", transaction));
        leader.pushLastEntry();
        require("the second node has all", SETUP, () -> Rows.of(follower).containsKey(5));
    }

    private static long begin(NemesisNode node) {
        return ((TransactionResult) node.server().getManager().executeStatement(new BeginTransactionStatement(NemesisNode.TABLESPACE),
                StatementEvaluationContext.DEFAULT_EVALUATION_CONTEXT(), TransactionContext.NO_TRANSACTION)).getTransactionId();
    }

    private static void acknowledged(Attempt attempt) throws Exception {
        require(attempt + " is acknowledged", SETUP, attempt::isOver);
        if (attempt.outcome() != Attempt.Outcome.ACKNOWLEDGED) {
            throw new IllegalStateException("before the story: " + attempt);
        }
    }

    Nemesis nemesis() {
        return nemesis;
    }

    Clients clients() {
        return clients;
    }

    ZookeeperMetadataStorageManager operator() {
        return operator;
    }

    String uuid() {
        return uuid;
    }

    /** The rows that were acknowledged before the story. */
    Map<Integer, String> before() {
        return before;
    }

    List<String> holes() {
        return holes;
    }

    /** The newest process of a node. */
    synchronized NemesisNode node(String name) {
        return nodes.get(name);
    }

    /** Makes a new process of a node unless one runs, and starts it beside. */
    synchronized void run(String name) throws Exception {
        NemesisNode last = nodes.get(name);
        if (last != null && !last.life().isDead() || ended.getCount() == 0) {
            return;
        }
        Life life = new Life(nemesis, name, processes.merge(name, 1, Integer::sum) - 1);
        NemesisNode node = NemesisNode.create(life, root, folders.get(name));
        nodes.put(name, node);
        made.add(node);
        threads.execute(() -> {
            try {
                node.start();
            } catch (Exception | Error error) {
                life.kill(); // as its program ends; what ended may be started again
            }
        });
    }

    /** As the operator names a leader: by compare-and-set of the record, and with a wake. */
    void name(String leader) throws Exception {
        while (true) {
            TableSpace record = operator.describeTableSpace(NemesisNode.TABLESPACE);
            if (record.leaderId.equals(leader)
                    || operator.updateTableSpace(TableSpace.builder().cloning(record).leader(leader).build(), record)) {
                break;
            }
        }
        running().forEach(NemesisNode::wake);
    }

    String named() throws Exception {
        return operator.describeTableSpace(NemesisNode.TABLESPACE).leaderId;
    }

    static String other(String name) {
        return name.equals("n0") ? "n1" : "n0";
    }

    /** Does something beside, and waits for its end; for a step's time at most where there is a fault. */
    void step(NemesisNode.Try work) throws InterruptedException {
        beside(work, patience);
    }

    private void beside(NemesisNode.Try work, Duration limit) throws InterruptedException {
        CountDownLatch done = new CountDownLatch(1);
        threads.execute(() -> {
            try {
                work.it();
            } catch (Exception | PowerCut refused) {
                // what is under a fault may refuse anything
            } finally {
                done.countDown();
            }
        });
        done.await(limit.toMillis(), TimeUnit.MILLISECONDS);
    }

    /** Waits for a condition, for a step's time at most where there is a fault; whether it came. */
    boolean await(Callable<Boolean> condition) throws Exception {
        return within(patience, condition);
    }

    void await(Attempt... attempts) throws Exception {
        await(() -> List.of(attempts).stream().allMatch(Attempt::isOver));
    }

    @Override
    public void strikes() {
        busy.incrementAndGet();
        struck.incrementAndGet();
    }

    @Override
    public void struck(Strike strike, Life life, Hold hold) {
        threads.execute(() -> {
            try {
                follow(strike, life, hold);
            } catch (Exception error) {
                holes.add("the test itself failed at " + strike + ": " + error);
            } finally {
                if (hold != null) {
                    hold.let();
                }
                busy.decrementAndGet();
            }
        });
    }

    /** What goes on while a node is struck, and what is done about it. */
    private void follow(Strike strike, Life life, Hold hold) throws Exception {
        burst();
        String rest = other(life.node());
        switch (strike.fault()) {
            case STOP -> {
                takeOver(rest, STEP);
                hold.let();
                burst();
            }
            case KILL -> {
                if (!takeOver(rest, one ? SERVES : STEP.multipliedBy(4)) && one) {
                    holes.add("with " + life.node() + " off, " + rest + " does not serve within " + SERVES.toSeconds() + " s");
                }
                run(life.node());
            }
            case EXPIRE -> node(life.node()).expire();
            case DELAY, FAIL, LOSE -> {
                // it goes on by itself
            }
        }
    }

    /** Clients write on both nodes, the leader changes its ledger, both write a checkpoint, old ledgers go: whatever can be done now. */
    private void burst() throws Exception {
        List<NemesisNode> both = running();
        List<Attempt> attempts = new ArrayList<>();
        if (transaction != 0) {
            attempts.add(clients.commit(both.get(0), OPEN, transaction));
            transaction = 0;
        }
        both.forEach(node -> attempts.add(clients.insert(node)));
        if (!before.isEmpty()) {
            attempts.add(clients.insert(both.get(0), 3, "a second one", 0));
        }
        within(MOMENT, () -> attempts.stream().allMatch(Attempt::isOver));
        for (NemesisNode node : both) {
            beside(() -> {
                if (node.log() != null) {
                    node.log().closeLedger(-1);
                }
            }, MOMENT);
        }
        for (NemesisNode node : both) {
            beside(node::checkpointAsTimed, MOMENT);
        }
        release(MOMENT);
        attempts.clear();
        both.forEach(node -> attempts.add(clients.insert(node)));
        within(MOMENT, () -> attempts.stream().allMatch(Attempt::isOver));
    }

    /** Both nodes tell what their disks have, and the leader, the last one, drops what nobody needs. */
    void release(Duration limit) throws Exception {
        List<NemesisNode> both = new ArrayList<>(running());
        if (named().equals("n0")) {
            Collections.reverse(both);
        }
        for (NemesisNode node : both) {
            beside(node::release, limit);
        }
    }

    private List<NemesisNode> running() {
        return List.of("n0", "n1").stream().map(this::node).filter(Objects::nonNull).toList();
    }

    /** The operator has a node lead unless it does; whether that one has acknowledged a row. */
    private boolean takeOver(String name, Duration limit) throws Exception {
        name(name);
        return serves(name, limit);
    }

    private boolean serves(String name, Duration limit) throws Exception {
        long deadline = System.nanoTime() + limit.toNanos();
        while (System.nanoTime() - deadline < 0) {
            NemesisNode node = node(name);
            if (node != null && node.life().isDead() && !one) {
                return false; // its own strike starts it again
            }
            if (node != null && node.leads()) {
                if (!Rows.hasTable(node)) {
                    Attempt table = clients.createTable(node);
                    within(Duration.ofSeconds(1), table::isOver);
                }
                Attempt attempt = clients.insert(node);
                within(Duration.ofSeconds(1), attempt::isOver);
                if (attempt.outcome() == Attempt.Outcome.ACKNOWLEDGED) {
                    return true;
                }
            }
            Thread.sleep(2);
        }
        return false;
    }

    /** All strikes are over, every node runs, and the one that the record names serves; else that is a hole. */
    boolean settle() throws Exception {
        if (!within(SERVES.multipliedBy(2), () -> busy.get() == 0)) {
            throw new IllegalStateException("a strike is not over");
        }
        boolean serves = within(SERVES, () -> {
            run("n0");
            run("n1");
            return busy.get() == 0 && serves(named(), Duration.ofSeconds(1));
        });
        if (!serves) {
            holes.add("nobody serves within " + SERVES.toSeconds() + " s: the record names " + named() + ", " + states());
        }
        return serves;
    }

    /** Both copies have the same rows, and the leader's are given; null when they do not become equal, which is a hole. */
    Map<Integer, String> equalRows() throws Exception {
        int struckBefore;
        boolean equal;
        do {
            struckBefore = struck.get();
            equal = within(SERVES, this::areEqual);
        } while (!equal && struck.get() != struckBefore);
        NemesisNode leader = node(named());
        NemesisNode follower = node(other(named()));
        if (!equal) {
            holes.add("the copies do not become equal within " + SERVES.toSeconds() + " s: " + leader.life().name() + " has " + Rows.of(leader)
                    + ", " + follower.life().name() + " has " + Rows.of(follower) + "; " + states());
            return null;
        }
        return Rows.of(leader);
    }

    private boolean areEqual() throws Exception {
        run("n0");
        run("n1");
        NemesisNode leader = node(named());
        NemesisNode follower = node(other(named()));
        leader.pushLastEntry();
        return busy.get() == 0 && leader.leads() && follower.follows() && Rows.digest(leader).equals(Rows.digest(follower));
    }

    /** Cuts the power of both nodes, and starts them again. */
    void restartAll() throws Exception {
        for (String name : List.of("n0", "n1")) {
            node(name).life().kill();
            run(name);
        }
    }

    private String states() {
        StringBuilder text = new StringBuilder();
        for (String name : List.of("n0", "n1")) {
            NemesisNode node = node(name);
            text.append(node.life().name()).append(node.life().isDead() ? " is off" : node.leads() ? " leads" : node.follows() ? " follows"
                    : node.tablespace() == null ? " has no such tablespace" : node.tablespace().isFailed() ? " has failed" : " is between").append("; ");
        }
        return text.toString();
    }

    private static boolean within(Duration limit, Callable<Boolean> condition) throws Exception {
        long began = System.nanoTime();
        while (!condition.call()) {
            long waited = System.nanoTime() - began;
            if (waited > limit.toNanos()) {
                return false;
            }
            // A tenth longer at most, since many conditions read ZooKeeper and the log.
            Thread.sleep(Math.max(1, Math.min(LONGEST_PAUSE_MILLIS, TimeUnit.NANOSECONDS.toMillis(waited) / 10)));
        }
        return true;
    }

    static void require(String what, Duration limit, Callable<Boolean> condition) throws Exception {
        if (!within(limit, condition)) {
            throw new IllegalStateException("not within " + limit.toSeconds() + " s: " + what);
        }
    }

    /** Takes everything away. */
    @Override
    public void close() throws Exception {
        nemesis.close();
        synchronized (this) {
            ended.countDown();
        }
        made.forEach(NemesisNode::remove);
        threads.shutdownNow();
        NemesisNode.REMOVALS.execute(this::closeOperator);
    }

    private void closeOperator() {
        try {
            operator.close();
        } catch (MetadataStorageManagerException gone) {
            // its session ends by itself
        }
    }
}
