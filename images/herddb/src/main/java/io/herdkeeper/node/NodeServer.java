package io.herdkeeper.node;

import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.core.DBManager;
import herddb.core.TableSpaceManager;
import herddb.log.CommitLogManager;
import herddb.model.TableSpace;
import herddb.model.planner.SortOp;
import herddb.network.Channel;
import herddb.network.ServerSideConnection;
import herddb.network.netty.NettyChannel;
import herddb.proto.Pdu;
import herddb.proto.PduCodec;
import herddb.security.SimpleSingleUserManager;
import herddb.security.sasl.SaslUtils;
import herddb.server.Server;
import herddb.server.ServerConfiguration;
import herddb.server.ServerSideConnectionPeer;
import herddb.server.ServerSideScannerPeer;
import herddb.utils.DataAccessor;
import io.herdkeeper.node.check.FollowerChecks;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.leadership.LeadershipMetadata;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.log.NodeCommitLogManager;
import io.herdkeeper.node.log.PromotionBars;
import io.herdkeeper.node.refusals.Refusals;
import io.herdkeeper.node.refusals.Refusals.Reason;
import io.herdkeeper.node.statement.StatementGuard;
import io.herdkeeper.node.tls.SqlPortTls;
import io.herdkeeper.node.users.BeforeLogin;
import io.herdkeeper.node.users.Strangers;
import io.netty.channel.ChannelPipeline;
import java.net.SocketAddress;
import java.util.Objects;
import java.util.Set;
import java.util.logging.Logger;
import org.apache.bookkeeper.stats.StatsProvider;

/** Makes HerdDB's server with this program's log, ZooKeeper client and TLS. */
public final class NodeServer {

    private static final Logger CONNECTIONS = Logger.getLogger(ServerSideConnectionPeer.class.getName());

    static {
        // The SQL planner's own is Latin-1: it ends the connection that sends a literal with anything else. Read when it is first used.
        System.setProperty("calcite.default.charset", "UTF-8");
        System.setProperty("calcite.default.nationalcharset", "UTF-8");
        System.setProperty("calcite.default.collation.name", "UTF-8$en_US");
        // A line with its stack for each refused login, without the client's address. Refusals tells of those.
        CONNECTIONS.setFilter(event -> !String.valueOf(event.getMessage()).matches("(?s)(SASL|Bad auth) error.*"));
        // DataAccessor and AbstractDataAccessor initialize each other. Of two threads that use one each first, both wait for ever: a new
        // leader's first INSERT did, beside the rehearsal of a boot. One thread initializes both here.
        Objects.requireNonNull(DataAccessor.NULL);
    }

    private NodeServer() {
    }

    /**
     * A connection that keeps no query whose answer it can't give any more, that tells of refused logins, and that restores nothing.
     *
     * <p>HerdDB closes the queries that a connection has when the connection ends. One that is begun by then, and waits for a row or reads for
     * long, would stay: its transaction counts it as open, so nobody could commit it or roll it back, and its locks would stay, too.
     */
    private static final class EndingConnection extends ServerSideConnectionPeer {

        /** By these HerdDB puts tables, rows and transactions into a running tablespace, of a leader or a follower, and nothing into its log. */
        private static final Set<Byte> RESTORES = Set.of(Pdu.TYPE_REQUEST_TABLE_RESTORE, Pdu.TYPE_PUSH_TABLE_DATA, Pdu.TYPE_PUSH_TXLOGCHUNK,
                Pdu.TYPE_PUSH_TRANSACTIONSBLOCK, Pdu.TYPE_TABLE_RESTORE_FINISHED, Pdu.TYPE_RESTORE_FINISHED);

        /** Kept, since a connection that has ended has none; null for one within the process. */
        private final SocketAddress client;

        EndingConnection(Channel channel, Server server) {
            super(channel, server);
            client = channel instanceof NettyChannel connection ? connection.getSocket().remoteAddress() : null;
        }

        @Override
        public void requestReceived(Pdu message, Channel channel) {
            if (!isStranger() && RESTORES.contains(message.type)) {
                refuseRestore(message, channel);
                return;
            }
            boolean wantsIn = isStranger() && !asksForAChallenge(message);
            super.requestReceived(message, channel);
            if (wantsIn && isStranger() && client != null) {
                Refusals.tell(Reason.LOGIN, client, "a SQL connection without a valid login");
            }
            if (!channel.isValid()) {
                getScanners().values().forEach(ServerSideScannerPeer::close);
            }
        }

        private static void refuseRestore(Pdu message, Channel channel) {
            try {
                channel.sendReplyMessage(message.messageId, PduCodec.ErrorResponse.write(message.messageId, "HerdDB's restore is refused, and"
                        + " nothing was changed: it writes no log, so the other replicas and each Checkpoint would lack what it brings. Restore"
                        + " a Checkpoint into a Tablespace, or write the rows by SQL"));
            } finally {
                message.close();
            }
        }

        private boolean isStranger() {
            return HerdInternals.username(this).isEmpty();
        }

        /** The first of the two messages of a login that does not send the password. */
        private static boolean asksForAChallenge(Pdu message) {
            return message.type == Pdu.TYPE_SASL_TOKEN_MESSAGE_REQUEST
                    && SaslUtils.AUTH_DIGEST_MD5.equals(PduCodec.SaslTokenMessageRequest.readMech(message));
        }
    }

    /** Makes a manager of commit logs out of what the server knows while it is being built. */
    @FunctionalInterface
    public interface LogManagerFactory {

        CommitLogManager create(ZookeeperMetadataStorageManager metadata);
    }

    /** A server in mode cluster that is not started yet, and whose SQL port is not encrypted. */
    public static Server create(ServerConfiguration configuration, StatsProvider statistics) {
        return create(configuration, statistics, (SqlPortTls) null);
    }

    /**
     * A server in mode cluster that is not started yet.
     *
     * @param tls of the SQL port, or null when that is not encrypted; then {@code server.ssl} is set, too, from which the
     *            server's record tells clients and followers to speak it
     */
    public static Server create(ServerConfiguration configuration, StatsProvider statistics, SqlPortTls tls) {
        LeadershipMetadata metadata = new LeadershipMetadata(configuration);
        return create(configuration, statistics, tls, metadata,
                new NodeCommitLogManager(metadata, configuration, statistics.getStatsLogger("")));
    }

    /** The same with a given way to ZooKeeper, and with the logs that go it, too: what a test stands in between. */
    public static Server create(ServerConfiguration configuration, StatsProvider statistics, SqlPortTls tls,
            LeadershipMetadata metadata, NodeCommitLogManager logs) {
        HerdInternals.verify(SortOp.class);
        Server server = create(configuration, statistics, tls, metadata, any -> logs);
        logs.obey(PromotionBars.of(server.getManager()));
        logs.compareBy(new FollowerChecks());
        metadata.tell(record -> {
            logs.recordRead(record);
            stopItsPredecessor(server.getManager(), record);
        });
        metadata.tellOfDrops(logs::fence);
        return server;
    }

    /** In the activator alone, which boots tablespaces: another thread may have read a record that is outdated by now. */
    private static void stopItsPredecessor(DBManager node, TableSpace record) {
        TableSpaceManager running = node.getTableSpaceManager(record.name);
        if (running != null && !running.getTableSpaceUUID().equals(record.uuid) && running.getLog() instanceof NodeCommitLog log
                && HerdInternals.generalLock(node).isWriteLockedByCurrentThread() && !log.isFailed()) {
            log.replaced(record.uuid);
        }
    }

    static Server create(ServerConfiguration configuration, StatsProvider statistics, LogManagerFactory logManagers) {
        return create(configuration, statistics, null, new LeadershipMetadata(configuration), logManagers);
    }

    private static Server create(ServerConfiguration configuration, StatsProvider statistics, SqlPortTls tls, LeadershipMetadata metadata,
            LogManagerFactory logManagers) {
        // 0: as many threads as there are requests. A COMMIT, or a login, would wait for statements that wait for the COMMIT.
        String threads = ServerConfiguration.PROPERTY_NETWORK_CALLBACK_THREADS;
        configuration.set(threads, configuration.getInt(threads, 0));
        Strangers strangers = new Strangers();
        // An anonymous class on purpose: Server's constructor calls buildCommitLogManager, and captured variables are set
        // before that constructor runs, fields of a named subclass only after it.
        Server server = new Server(configuration, statistics) {
            @Override
            protected CommitLogManager buildCommitLogManager() {
                return logManagers.create(metadata);
            }

            @Override
            protected ServerSideConnectionPeer buildPeer(Channel channel) {
                return new EndingConnection(channel, this);
            }

            @Override
            public ServerSideConnection createConnection(Channel channel) {
                ServerSideConnectionPeer peer = (ServerSideConnectionPeer) super.createConnection(channel);
                if (channel instanceof NettyChannel connection) {
                    // The acceptor asks before it fills the pipeline, so these come first: TLS, and then the limit of what it has decrypted.
                    ChannelPipeline pipeline = connection.getSocket().pipeline();
                    pipeline.addFirst("before-login", new BeforeLogin(() -> !HerdInternals.username(peer).isEmpty(), strangers));
                    if (tls != null) {
                        tls.encrypt(pipeline);
                    }
                }
                return peer;
            }
        };
        HerdInternals.metadata(server, metadata);
        StatementGuard.install(server, metadata, configuration, statistics.getStatsLogger(""));
        // The server has read them. The table sysconfig shows the configuration to every SQL user.
        configuration.set(ServerConfiguration.PROPERTY_SERVER_TO_SERVER_PASSWORD, null);
        configuration.set(SimpleSingleUserManager.PROPERTY_ADMIN_PASSWORD, null);
        if (tls != null) {
            // Its record has been made from server.ssl; the acceptor would put a certificate of its own before this one.
            server.getNetworkServer().setSsl(false);
        }
        return server;
    }
}
