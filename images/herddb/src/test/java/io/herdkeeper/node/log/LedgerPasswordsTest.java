package io.herdkeeper.node.log;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import herddb.cluster.BookkeeperCommitLog;
import herddb.log.LogSequenceNumber;
import herddb.model.TableSpace;
import io.herdkeeper.node.log.LogBench.Follower;
import io.herdkeeper.node.log.LogBench.Program;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.util.ReferenceCounted;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.client.api.WriteFlag;
import org.apache.bookkeeper.net.BookieId;
import org.apache.bookkeeper.proto.BookieProtocol;
import org.apache.bookkeeper.proto.DataFormats.LedgerMetadataFormat.DigestType;
import org.apache.bookkeeper.proto.checksum.DigestManager;
import org.apache.bookkeeper.proto.checksum.MacDigestManager;
import org.junit.jupiter.api.Test;

class LedgerPasswordsTest {

    private static final byte[] HERDDBS = "herddb".getBytes(StandardCharsets.UTF_8);

    @Test
    void eachLedgerHasAPasswordOfItsOwnAndTheNextLeaderAndFollowersReadThemAll() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog leader = LogBench.lead(bench.open("leader"));
            LogBench.write(leader, "first");
            leader.rollNewLedger();
            LogSequenceNumber last = LogBench.write(leader, "second");
            List<byte[]> passwords = bench.ledgers().stream().map(LedgerMetadata::getPassword).toList();
            assertEquals(2, passwords.size());
            passwords.forEach(password -> assertFalse(Arrays.equals(HERDDBS, password)));
            assertFalse(Arrays.equals(passwords.get(0), passwords.get(1)));

            BookkeeperCommitLog next = bench.open("next");
            assertEquals(List.of("first", "second"), LogBench.fenceAndReplay(next));
            next.startWriting(1);
            LogSequenceNumber ours = LogBench.write(next, "third");
            LogBench.write(next, "pushes the third");
            assertFalse(Arrays.equals(HERDDBS, bench.ledgers().get(2).getPassword()));
            try (Follower follower = new Follower(bench.open("follower"))) {
                follower.followTo(ours);
                assertEquals(List.of("first", "second", "third"), follower.rows(), last + " was the last of the leader before");
            }
            next.close();
        }
    }

    @Test
    void aLogOfAnEarlierVersionKeepsItsPasswordSoThatThatVersionCanGoOn() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            LogBench.write(LogBench.lead(bench.openPlain("of before")), "before");
            BookkeeperCommitLog leader = bench.open("ours");
            assertEquals(List.of("before"), LogBench.fenceAndReplay(leader));
            leader.startWriting(1);
            LogBench.write(leader, "ours");
            leader.rollNewLedger();
            LogBench.write(leader, "ours, too");
            for (LedgerMetadata ledger : bench.ledgers()) {
                assertArrayEquals(HERDDBS, ledger.getPassword());
            }
            assertEquals(List.of("before", "ours", "ours, too"), LogBench.fenceAndReplay(bench.openPlain("of before")));
        }
    }

    @Test
    void aNewTablespaceOfADatabaseOfAnEarlierVersionHasItsPassword() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            LogBench.write(LogBench.lead(bench.openPlain(firstTablespace(bench), TableSpace.DEFAULT, "of before")), "before");
            LogBench.write(LogBench.lead(bench.open("ours")), "ours");
            assertArrayEquals(HERDDBS, bench.ledgers().get(0).getPassword());
        }
    }

    @Test
    void aNewTablespaceHasPasswordsOfItsOwnThoughAMemberOfZooKeeperDoesNotShowTheNewestLedgerOfTheFirstOneYet() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog herd = LogBench.lead(bench.manager().createCommitLog(firstTablespace(bench), TableSpace.DEFAULT, "node"));
            bench.hideUntilAWrite(herd.getWriter().getLedgerId());
            LogBench.lead(bench.open("leader"));
            assertFalse(Arrays.equals(HERDDBS, bench.ledgers().get(0).getPassword()));
        }
    }

    @Test
    void aNewTablespaceHasPasswordsOfItsOwnThoughTheNewestLedgerOfTheFirstOneIsLost() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog herd = LogBench.lead(bench.manager().createCommitLog(firstTablespace(bench), TableSpace.DEFAULT, "node"));
            LogBench.write(herd, "in the first ledger");
            herd.rollNewLedger();
            loseNewestLedger(bench, herd);
            LogBench.lead(bench.open("leader"));
            assertFalse(Arrays.equals(HERDDBS, bench.ledgers().get(0).getPassword()));
        }
    }

    @Test
    void aNewTablespaceHasPasswordsOfItsOwnThoughAllLedgersOfTheFirstOneAreLost() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog herd = LogBench.lead(bench.manager().createCommitLog(firstTablespace(bench), TableSpace.DEFAULT, "node"));
            loseNewestLedger(bench, herd);
            LogBench.lead(bench.open("leader"));
            assertFalse(Arrays.equals(HERDDBS, bench.ledgers().get(0).getPassword()));
        }
    }

    @Test
    void aNewTablespaceOfADatabaseOfAnEarlierVersionHasItsPasswordThoughTheNewestLedgerOfTheFirstOneIsLost() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog herd = LogBench.lead(bench.openPlain(firstTablespace(bench), TableSpace.DEFAULT, "of before"));
            LogBench.write(herd, "in the first ledger");
            herd.rollNewLedger();
            loseNewestLedger(bench, herd);
            LogBench.lead(bench.open("ours"));
            assertArrayEquals(HERDDBS, bench.ledgers().get(0).getPassword());
        }
    }

    @Test
    void whoKnowsHerdDBsPasswordNeitherFencesALedgerNorWritesIntoIt() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog leader = LogBench.lead(bench.open("leader"));
            LogSequenceNumber last = LogBench.write(leader, "acknowledged");
            BookieId bookie = bench.ledgers().get(0).getAllEnsembles().get(0L).get(0);
            byte[] key = MacDigestManager.genDigest("ledger", HERDDBS);

            CompletableFuture<Integer> fenced = new CompletableFuture<>();
            bench.bookies().readEntry(bookie, last.ledgerId, last.offset, (code, ledger, entry, data, context) -> fenced.complete(code),
                    null, BookieProtocol.FLAG_DO_FENCING, key);
            assertEquals(BKException.Code.UnauthorizedAccessException, fenced.get());

            DigestManager digest = DigestManager.instantiate(
                    last.ledgerId, HERDDBS, DigestType.CRC32C, UnpooledByteBufAllocator.DEFAULT, false);
            ReferenceCounted forged = digest.computeDigestAndPackageForSending(last.offset, last.offset - 1, 6,
                    Unpooled.copiedBuffer("forged", StandardCharsets.UTF_8), key, BookieProtocol.FLAG_RECOVERY_ADD);
            CompletableFuture<Integer> written = new CompletableFuture<>();
            bench.bookies().addEntry(bookie, last.ledgerId, key, last.offset, forged,
                    (code, ledger, entry, address, context) -> written.complete(code), null, BookieProtocol.FLAG_RECOVERY_ADD, false, WriteFlag.NONE);
            assertEquals(BKException.Code.UnauthorizedAccessException, written.get());

            LogBench.write(leader, "goes on");
            assertEquals(List.of("acknowledged", "goes on"), LogBench.fenceAndReplay(bench.open("next")));
        }
    }

    /** Makes the default tablespace; returns its uuid. */
    private static String firstTablespace(LogBench bench) throws Exception {
        bench.metadata().ensureDefaultTableSpace("node", "node", 0, 1);
        return bench.metadata().describeTableSpace(TableSpace.DEFAULT).uuid;
    }

    private static void loseNewestLedger(LogBench bench, BookkeeperCommitLog log) throws Exception {
        bench.manager().getBookKeeper().deleteLedger(log.getWriter().getLedgerId());
    }
}
