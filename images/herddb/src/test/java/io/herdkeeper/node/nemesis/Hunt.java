package io.herdkeeper.node.nemesis;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** The cases of a story, made from what its nodes were seen to do without any fault. */
final class Hunt {

    /** What is not in each of these recordings can't be told from chance. */
    private static final int RECORDINGS = 3;

    private final Story story;
    private final List<Point> points;

    private Hunt(Story story, List<Point> points) {
        this.story = story;
        this.points = points;
    }

    /**
     * Tells the story without a fault, some times.
     *
     * @throws AssertionError when something is wrong with that already
     */
    static Hunt of(Story story) {
        List<Point> points = null;
        for (int recording = 0; recording < RECORDINGS; recording++) {
            Told told = Told.of(new Case(story.toString(), List.of()));
            if (!told.holes().isEmpty()) {
                throw new AssertionError(story + ", without any fault: " + told.holes());
            }
            Set<String> seen = told.points().stream().map(Point::name).collect(Collectors.toSet());
            points = (points == null ? told.points() : points).stream().filter(point -> seen.contains(point.name())).toList();
        }
        return new Hunt(story, points);
    }

    Story story() {
        return story;
    }

    /** How many points there are of each kind. */
    Map<Kind, Long> counts() {
        return points.stream().collect(Collectors.groupingBy(point -> point.call().kind(), TreeMap::new, Collectors.counting()));
    }

    /** Each fault at each point. */
    List<Case> singles() {
        return points.stream().flatMap(point -> Fault.at(point.call(), point.moment()).stream().map(fault -> struck(point, fault))).toList();
    }

    /**
     * Each two points at which something changes, with a fault each: another one with each turn.
     *
     * <p>Between the end of a call and the next one that changes anything a node is the same to the world, but for answers that were lost:
     * of the ends those of requests are taken.
     */
    List<Case> pairs(int turn) {
        List<Point> changes = points.stream().filter(point -> point.call().changes()
                && (point.moment() == Moment.BEFORE || Fault.at(point.call(), point.moment()).contains(Fault.LOSE))).toList();
        List<Case> pairs = new ArrayList<>();
        for (int first = 0; first < changes.size(); first++) {
            for (int second = first + 1; second < changes.size(); second++) {
                pairs.add(struck(changes.get(first), faultOf(changes.get(first), turn + second))
                        .with(new Strike(changes.get(second).name(), faultOf(changes.get(second), turn + first + second / 5))));
            }
        }
        return pairs;
    }

    private static Fault faultOf(Point point, int turn) {
        List<Fault> faults = Fault.at(point.call(), point.moment());
        return faults.get(Math.floorMod(turn, faults.size()));
    }

    private Case struck(Point point, Fault fault) {
        return new Case(story.toString(), List.of(new Strike(point.name(), fault)));
    }

    /** So many of the cases, others with each turn, spread over all. */
    static List<Case> slice(List<Case> cases, int count, int turn) {
        int parts = Math.max(1, (cases.size() + count - 1) / count);
        List<Case> slice = new ArrayList<>();
        for (int place = Math.floorMod(turn, parts); place < cases.size(); place += parts) {
            slice.add(cases.get(place));
        }
        return slice;
    }
}
