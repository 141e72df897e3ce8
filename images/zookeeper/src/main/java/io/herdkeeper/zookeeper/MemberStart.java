package io.herdkeeper.zookeeper;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import javax.security.sasl.SaslException;
import org.apache.zookeeper.common.AtomicFileWritingIdiom;
import org.apache.zookeeper.server.ExitCode;
import org.apache.zookeeper.server.ZKDatabase;
import org.apache.zookeeper.server.persistence.FileTxnSnapLog;
import org.apache.zookeeper.server.quorum.QuorumPeer;
import org.apache.zookeeper.server.quorum.QuorumPeerConfig;
import org.apache.zookeeper.server.quorum.QuorumPeerConfig.ConfigException;
import org.apache.zookeeper.server.quorum.QuorumPeerMain;
import org.apache.zookeeper.server.util.ZxidUtils;
import org.apache.zookeeper.util.ServiceUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Starts a ZooKeeper member, which ends once it can't write transactions ({@link EndingLog}). A synchronisation with a leader that was
 * interrupted is finished first.
 *
 * <p>A member that joins a leader stores that leader's snapshot or transactions, and only then the leader's epoch, in
 * {@code currentEpoch} (3.9.5, {@code Learner.syncWithLeader}). ZooKeeper never starts from what a kill in between leaves: the last
 * transaction is of a later epoch than {@code currentEpoch} (ZOOKEEPER-2354). So that epoch is written there.
 *
 * <p>The member then claims no more than it has. An epoch has transactions once a majority has accepted its leader with all of the
 * leader's history, which contains everything that was committed in earlier epochs. Whoever has such a transaction also has that history
 * and all of the epoch's earlier transactions. In an election, a member with more transactions of the same epoch still wins. Nothing is
 * acknowledged to a leader: a joining member does so after it wrote {@code currentEpoch}.
 *
 * <p>What counts is what ZooKeeper loads, not names of files. A member that took its epoch from a half-written snapshot would win with an
 * old history, and committed transactions would be lost.
 */
public final class MemberStart extends QuorumPeerMain {

    private static final Logger LOG = LoggerFactory.getLogger(MemberStart.class);

    private MemberStart() { }

    /** Takes the arguments of {@link QuorumPeerMain}. */
    public static void main(String[] arguments) {
        if (arguments.length == 1) {
            finishSynchronisation(Path.of(arguments[0]));
        }
        ExitCode code = ExitCode.EXECUTION_FINISHED;
        try {
            new MemberStart().initializeAndRun(arguments);
        } catch (ConfigException | IllegalArgumentException wrong) {
            LOG.error("The configuration is not valid, and this member ends", wrong);
            code = ExitCode.INVALID_INVOCATION;
        } catch (Exception failed) {
            LOG.error("This member ends", failed);
            code = ExitCode.UNEXPECTED_ERROR;
        }
        ServiceUtils.requestSystemExit(code.getValue());
    }

    @Override
    protected QuorumPeer getQuorumPeer() throws SaslException {
        return new QuorumPeer() {
            @Override
            public void setTxnFactory(FileTxnSnapLog store) {
                try {
                    super.setTxnFactory(new EndingLog(store, () -> Runtime.getRuntime().halt(ExitCode.UNEXPECTED_ERROR.getValue())));
                } catch (IOException failed) {
                    throw new UncheckedIOException(failed);
                }
            }
        };
    }

    /** Changes nothing where the store can't be read: ZooKeeper says why when it starts. */
    static void finishSynchronisation(Path configuration) {
        try {
            Path store = store(configuration);
            Path currentFile = store.resolve(QuorumPeer.CURRENT_EPOCH_FILENAME);
            Path acceptedFile = store.resolve(QuorumPeer.ACCEPTED_EPOCH_FILENAME);
            if (!Files.exists(currentFile) || !Files.exists(acceptedFile)) {
                return;
            }
            long current = epochIn(currentFile);
            long accepted = epochIn(acceptedFile);
            if (accepted <= current) {
                return; // an epoch is accepted before the synchronisation begins: none was interrupted
            }
            long last = lastLoaded(configuration);
            long epoch = ZxidUtils.getEpochFromZxid(last);
            if (epoch > current && epoch <= accepted) {
                new AtomicFileWritingIdiom(currentFile.toFile(), (Writer out) -> out.write(Long.toString(epoch)));
                LOG.warn("A synchronisation with a leader was interrupted: {} is now {}, the epoch of the last transaction 0x{}; it was {}",
                        currentFile, epoch, Long.toHexString(last), current);
            }
        } catch (ConfigException | IOException | RuntimeException failed) {
            LOG.warn("Whether a synchronisation with a leader was interrupted can't be told, and nothing is changed: {}", failed.toString());
        }
    }

    /**
     * The folder of snapshots and epochs. The settings are read here without ZooKeeper's configuration: that looks up the names of all
     * members, and would delay a start with nothing to do.
     */
    private static Path store(Path configuration) throws IOException {
        Properties settings = new Properties();
        try (InputStream text = Files.newInputStream(configuration)) {
            settings.load(text);
        }
        return Path.of(settings.getProperty("dataDir").trim(), FileTxnSnapLog.version + FileTxnSnapLog.VERSION);
    }

    private static long epochIn(Path file) throws IOException {
        return Long.parseLong(Files.readString(file).trim());
    }

    /** The last transaction that ZooKeeper will load. Its classes keep the settings that they find when they are first used. */
    private static long lastLoaded(Path configuration) throws ConfigException, IOException {
        QuorumPeerConfig config = new QuorumPeerConfig();
        config.parse(configuration.toString());
        ZKDatabase tree = new ZKDatabase(new FileTxnSnapLog(config.getDataLogDir(), config.getDataDir()));
        try {
            tree.loadDataBase();
            return tree.getDataTreeLastProcessedZxid();
        } finally {
            tree.close();
        }
    }
}
