package io.herdkeeper.node.release;

import herddb.cluster.LedgersInfo;
import herddb.log.LogSequenceNumber;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;

/**
 * Decides which ledgers of a log may be dropped. Pure: the caller has read everything that counts.
 *
 * <p>Only the log's oldest ledgers may be dropped, without a gap: the list ends at the first one that must be kept. A ledger's age counts
 * from its end, when the next one was opened. A ledger that is still needed stays. Only a few are dropped at a time, since writes wait for
 * each until ZooKeeper has the next list.
 */
public final class ReleaseRule {

    /** For each look, or a quarter of what there is: so however fast ledgers come, they go as fast. */
    static final int MOST_AT_ONCE = 8;

    private ReleaseRule() {
    }

    /**
     * Somebody who needs the log.
     *
     * @param who  for people
     * @param from everything at and behind it; empty when it is not known, and then everything is needed
     */
    public record Need(String who, Optional<LogSequenceNumber> from) {

        boolean holds(long ledger) {
            return from.isEmpty() || ledger >= from.get().ledgerId;
        }
    }

    /**
     * What becomes of the ledgers that are old enough.
     *
     * @param released    may be dropped now, in this order; others may be later
     * @param kept        are old enough, and needed
     * @param keptSince   when the oldest of those ended, in ms since 1970; 0 when there is none
     * @param keptFor     who needs that one
     */
    public record Decision(List<Long> released, List<Long> kept, long keptSince, List<String> keptFor) {
    }

    /** The oldest ledgers that ended longer ago than the retention, in the log's order; the one that is written has not ended. */
    public static List<Long> ended(LedgersInfo ledgers, long now, long retention) {
        List<Long> ids = ledgers.getActiveLedgers();
        List<Long> old = new ArrayList<>();
        for (int i = 0; i + 1 < ids.size() && end(ledgers, i, now) < now - retention; i++) {
            old.add(ids.get(i));
        }
        return old;
    }

    /** Decides on the ledgers that ended longer ago than the retention. */
    public static Decision decide(LedgersInfo ledgers, long now, long retention, Collection<Need> needs) {
        List<Long> old = ended(ledgers, now, retention);
        int released = 0;
        while (released < old.size() && holders(needs, old.get(released)).isEmpty()) {
            released++;
        }
        List<Long> kept = old.subList(released, old.size());
        return new Decision(List.copyOf(old.subList(0, Math.min(released, Math.max(MOST_AT_ONCE, released / 4)))), List.copyOf(kept),
                kept.isEmpty() ? 0 : end(ledgers, released, now), kept.isEmpty() ? List.of() : holders(needs, kept.get(0)));
    }

    private static List<String> holders(Collection<Need> needs, long ledger) {
        return needs.stream().filter(need -> need.holds(ledger)).map(Need::who).sorted().toList();
    }

    /**
     * When a ledger ended: the latest of all openings up to its successor's. Leaders' clocks differ, and one that is behind must not
     * make a ledger look older than those before it. An opening in the future counts for nothing, and the one after it in its place: a
     * clock that is years ahead must not have the log kept for years.
     */
    private static long end(LedgersInfo ledgers, int index, long now) {
        List<Long> openings = ledgers.getLedgersTimestamps();
        long latest = 0;
        for (int i = 0; i < openings.size(); i++) {
            if (openings.get(i) <= now) {
                latest = Math.max(latest, openings.get(i));
                if (i > index) {
                    return latest;
                }
            }
        }
        return Long.MAX_VALUE;
    }
}
