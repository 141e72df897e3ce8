package io.herdkeeper.node.nemesis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * Whatever happens to one of two nodes, at whichever step, clients keep what they were promised, both copies become equal, and the
 * tablespace serves again without a person.
 *
 * <p>The steps are those that the nodes are seen to take. {@code make nemesis} takes each fault at each step, and each two steps; here it
 * is a part of both, another one with each commit ({@code nemesis.turn}). {@code nemesis.case} repeats one.
 */
class NemesisTest {

    private static final String ONE = System.getProperty("nemesis.case", "");
    private static final int TURN = Integer.getInteger("nemesis.turn", 0);
    private static final boolean WHOLE = Boolean.getBoolean("nemesis.whole");
    private static final long MINUTES = Long.getLong("nemesis.minutes", Long.MAX_VALUE / 60_000_000_000L);
    private static final int SINGLES = 30;
    private static final int PAIRS = 8;
    /** The runs mostly wait. */
    private static final int AT_ONCE = Integer.getInteger("nemesis.at-once", 6 * Runtime.getRuntime().availableProcessors());
    private static final long TOLD_EACH = 200;

    private static final Map<Story, Hunt> HUNTS = new EnumMap<>(Story.class);

    private static Level level;

    /** Thousands of runs in which everything fails would fill the disk with what HerdDB says to that; one may be read. */
    @BeforeAll
    static void quiet() {
        level = Logger.getLogger("").getLevel();
        if (ONE.isEmpty()) {
            Logger.getLogger("").setLevel(Level.OFF);
        }
    }

    @AfterAll
    static void asBefore() {
        Logger.getLogger("").setLevel(level);
    }

    @Test
    void ofEachKindOfStepSomeAreSeen() {
        if (ONE.isEmpty()) {
            assertSeen(hunt(Story.FIRST_BOOT), Map.of(Kind.ZOOKEEPER, 30, Kind.BOOKKEEPER, 18, Kind.DISK, 20, Kind.APPLY, 4, Kind.STEP, 6));
            assertSeen(hunt(Story.LEADER_CHANGE), Map.of(Kind.ZOOKEEPER, 15, Kind.BOOKKEEPER, 40, Kind.DISK, 100, Kind.APPLY, 16, Kind.STEP, 6));
            assertSeen(hunt(Story.FOLLOWER_AT_A_ROLL), Map.of(Kind.ZOOKEEPER, 12, Kind.BOOKKEEPER, 30, Kind.DISK, 100, Kind.APPLY, 10, Kind.STEP, 4));
            assertSeen(hunt(Story.DROPPED_LEDGERS), Map.of(Kind.ZOOKEEPER, 30, Kind.BOOKKEEPER, 35, Kind.DISK, 100, Kind.APPLY, 14));
            for (int ledger = 1; ledger <= 2; ledger++) {
                String dropped = "n0 bk removeLedgerMetadata ledger " + ledger + " #1";
                assertTrue(hunt(Story.DROPPED_LEDGERS).singles().stream().anyMatch(each -> each.toString().contains(dropped)), dropped);
            }
        }
    }

    private static void assertSeen(Hunt hunt, Map<Kind, Integer> least) {
        least.forEach((kind, count) -> assertTrue(hunt.counts().getOrDefault(kind, 0L) >= count,
                hunt.story() + ": points of each kind are " + hunt.counts() + ", and of " + kind + " at least " + count + " are expected"));
    }

    @Test
    void clientsKeepWhatTheyWerePromisedWhateverHappensAtOneStep() throws Exception {
        List<String> holes = new ArrayList<>(ONE.isEmpty() ? List.of() : survive(List.of(Case.parse(ONE))));
        for (Story story : stories()) {
            List<Case> singles = hunt(story).singles();
            holes.addAll(survive(WHOLE ? mixed(singles) : Hunt.slice(singles, SINGLES, TURN)));
        }
        assertEquals("", String.join("\n", holes));
    }

    @Test
    void clientsKeepWhatTheyWerePromisedWhateverHappensAtTwoSteps() throws Exception {
        List<String> holes = new ArrayList<>();
        for (Story story : stories()) {
            List<Case> pairs = hunt(story).pairs(TURN);
            holes.addAll(survive(WHOLE ? mixed(pairs) : Hunt.slice(pairs, PAIRS, TURN)));
        }
        assertEquals("", String.join("\n", holes));
    }

    private static Story[] stories() {
        return ONE.isEmpty() ? Story.values() : new Story[0];
    }

    private static Hunt hunt(Story story) {
        return HUNTS.computeIfAbsent(story, Hunt::of);
    }

    /** In an order of the turn's own, so that those that a time is enough for are of all. */
    private static List<Case> mixed(List<Case> cases) {
        List<Case> mixed = new ArrayList<>(cases);
        Collections.shuffle(mixed, new Random(TURN));
        return mixed;
    }

    /** Tells the cases, as many as there is time for, and gives what was wrong. */
    private static Collection<String> survive(List<Case> cases) throws Exception {
        long begun = System.nanoTime();
        AtomicInteger done = new AtomicInteger();
        AtomicInteger missed = new AtomicInteger();
        Collection<String> holes = new ConcurrentLinkedQueue<>();
        ExecutorService threads = Executors.newFixedThreadPool(AT_ONCE);
        List<CompletableFuture<Void>> runs = new ArrayList<>();
        for (Case each : cases) {
            runs.add(CompletableFuture.runAsync(() -> {
                if (System.nanoTime() - begun > TimeUnit.MINUTES.toNanos(MINUTES)) {
                    return;
                }
                Told told = Told.of(each);
                missed.addAndGet(told.missed().size());
                if (!told.holes().isEmpty()) {
                    String hole = "make nemesis CASE=\"" + each + "\"\n    " + String.join("\n    ", told.holes());
                    System.out.println(hole);
                    holes.add(hole);
                }
                if (done.incrementAndGet() % TOLD_EACH == 0) {
                    tell(done.get(), cases, missed.get(), holes.size(), begun);
                }
            }, threads));
        }
        CompletableFuture.allOf(runs.toArray(CompletableFuture[]::new)).get();
        threads.shutdown();
        tell(done.get(), cases, missed.get(), holes.size(), begun);
        return holes;
    }

    private static void tell(int done, List<Case> cases, int missed, int holes, long begun) {
        System.out.printf("nemesis: %s: %d of %d runs in %d s, %d with a hole, %d faults whose step nobody came to (turn %d)%n",
                cases.get(0).story(), done, cases.size(), (System.nanoTime() - begun) / 1_000_000_000, holes, missed, TURN);
    }
}
