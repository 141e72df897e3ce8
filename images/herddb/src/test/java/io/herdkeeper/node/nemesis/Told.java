package io.herdkeeper.node.nemesis;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * What became of a case.
 *
 * @param points which its nodes came to
 * @param missed the strikes whose points nobody came to
 * @param holes  what is wrong, as sentences; empty is good
 */
record Told(Case what, List<Point> points, List<Strike> missed, List<String> holes, long millis) {

    /** Tells a case, in a thread of its own: Netty leaves in each thread what one has used. */
    static Told of(Case what) {
        CompletableFuture<Told> told = new CompletableFuture<>();
        new Thread(() -> told.complete(tell(what)), "story").start();
        return told.join();
    }

    private static Told tell(Case what) {
        long begun = System.nanoTime();
        List<String> holes = new ArrayList<>();
        List<Point> points = List.of();
        List<Strike> missed = List.of();
        try (Run run = new Run(what)) {
            try {
                Story story = Story.named(what.story());
                story.setUp(run);
                run.nemesis().open();
                story.tell(run);
                judge(run, holes);
            } finally {
                points = run.nemesis().seen();
                missed = run.nemesis().missed();
                holes.addAll(run.holes());
            }
        } catch (Exception | Error error) {
            StringWriter trace = new StringWriter();
            error.printStackTrace(new PrintWriter(trace));
            holes.add("the test itself failed: " + trace);
        }
        return new Told(what, points, missed, List.copyOf(holes), (System.nanoTime() - begun) / 1_000_000);
    }

    private static void judge(Run run, List<String> holes) throws Exception {
        if (!run.settle() || run.equalRows() == null) {
            return;
        }
        run.nemesis().close();
        if (!run.settle()) { // there may have been a last strike
            return;
        }
        Verdict verdict = new Verdict(run);
        Map<Integer, String> rows = run.equalRows();
        if (rows == null) {
            return;
        }
        holes.addAll(verdict.of(rows));
        holes.addAll(verdict.ofLog());
        run.release(Run.STEP);
        run.restartAll();
        if (run.settle() && (rows = run.equalRows()) != null) {
            verdict.of(rows).forEach(hole -> holes.add("after a power cut of both: " + hole));
        }
    }
}
