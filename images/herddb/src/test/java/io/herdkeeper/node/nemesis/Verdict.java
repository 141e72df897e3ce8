package io.herdkeeper.node.nemesis;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Whether what was promised to clients holds. */
final class Verdict {

    private final Run run;
    private final List<Attempt> promises;

    /** By what clients know now; the rows and the log are to be read later. */
    Verdict(Run run) {
        this.run = run;
        this.promises = run.clients().attempts().stream().map(Attempt::now).toList();
    }

    /** What is wrong with the rows that a leader has, as sentences. */
    List<String> of(Map<Integer, String> rows) {
        List<String> holes = new ArrayList<>();
        run.before().forEach((key, value) -> {
            if (!value.equals(rows.get(key))) {
                holes.add("row " + key + " is '" + rows.get(key) + "', and '" + value + "' was acknowledged before the story");
            }
        });
        if (rows.containsKey(Run.DELETED)) {
            holes.add("row " + Run.DELETED + " is there again, though its DELETE was acknowledged");
        }
        boolean committed = false;
        boolean unknown = false;
        for (Attempt attempt : promises) {
            boolean there = rows.containsKey(attempt.key());
            if (attempt.key() == Run.OPEN) {
                boolean commits = attempt.toString().startsWith("COMMIT");
                committed |= commits && attempt.outcome() == Attempt.Outcome.ACKNOWLEDGED;
                unknown |= commits && attempt.outcome() == Attempt.Outcome.UNKNOWN;
            } else if (attempt.key() >= 1_000 && attempt.outcome() == Attempt.Outcome.ACKNOWLEDGED && !there) {
                holes.add(attempt + " is not there");
            } else if (attempt.key() >= 1_000 && attempt.outcome() == Attempt.Outcome.REFUSED && there) {
                holes.add(attempt + " is there");
            }
        }
        if (committed != rows.containsKey(Run.OPEN) && !unknown) {
            holes.add("the row of the transaction that was " + (committed ? "committed is not there" : "not committed is there"));
        }
        return holes;
    }

    /** An INSERT of its own in the log. */
    private record Place(int list, String leader) {
    }

    /** What is wrong with the log: a row that is in none of its ledgers, and two nodes that acknowledged at one time. */
    List<String> ofLog() throws Exception {
        Map<Integer, Place> places = places();
        List<String> holes = new ArrayList<>();
        List<Attempt> acknowledged = promises.stream()
                .filter(attempt -> attempt.outcome() == Attempt.Outcome.ACKNOWLEDGED && attempt.key() >= 1_000).toList();
        for (Attempt attempt : acknowledged) {
            if (!places.containsKey(attempt.key())) {
                holes.add(attempt + " is in no ledger of the list");
            }
        }
        for (Attempt old : acknowledged) {
            for (Attempt next : acknowledged) {
                Place before = places.get(old.key());
                Place after = places.get(next.key());
                if (before != null && after != null && before.list() < after.list() && !before.leader().equals(after.leader())
                        && old.asked() - next.answered() > 0) {
                    holes.add("two nodes acknowledged at one time: " + next + " was acknowledged before " + old + " was asked for");
                }
            }
        }
        return holes;
    }

    /** Of the ledgers of the list, and of those that were dropped from its begin. */
    private Map<Integer, Place> places() throws Exception {
        Map<Long, LoggedRows> log = new LinkedHashMap<>(run.nemesis().dropped());
        run.operator().getActualLedgersList(run.uuid()).getActiveLedgers().forEach(id -> log.put(id, LoggedRows.of(id)));
        Map<Integer, Place> places = new HashMap<>();
        int number = 0;
        for (LoggedRows ledger : log.values()) {
            for (int key : ledger.keys()) {
                places.put(key, new Place(number, ledger.leader()));
            }
            number++;
        }
        return places;
    }
}
