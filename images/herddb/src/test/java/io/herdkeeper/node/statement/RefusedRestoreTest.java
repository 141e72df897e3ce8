package io.herdkeeper.node.statement;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.client.ClientConfiguration;
import herddb.client.ClientSideConnectionPeer;
import herddb.client.HDBClient;
import herddb.client.HDBConnection;
import herddb.core.TableManager;
import herddb.log.CommitLogResult;
import herddb.log.LogEntry;
import herddb.log.LogEntryFactory;
import herddb.log.LogSequenceNumber;
import herddb.model.ColumnTypes;
import herddb.model.Table;
import herddb.model.Transaction;
import herddb.network.Channel;
import herddb.proto.Pdu;
import herddb.proto.PduCodec;
import herddb.server.StaticClientSideMetadataProvider;
import herddb.utils.Bytes;
import herddb.utils.KeyValue;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import io.netty.buffer.ByteBuf;
import java.lang.reflect.Field;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The requests by which HerdDB's tools restore a backup. */
class RefusedRestoreTest {

    private static final int LIMIT_MILLIS = 60_000;

    private static RunningNode node;

    @BeforeAll
    static void start() throws Exception {
        node = RunningNode.start("n0", BookKeeperForTests.running().newRoot(), null);
        node.server().waitForTableSpaceBoot("herd", LIMIT_MILLIS, true);
        Node.execute(node.server(), 0, "CREATE TABLE t (k int primary key)");
        Node.execute(node.server(), 0, "INSERT INTO t(k) VALUES(1)");
    }

    @AfterAll
    static void stop() throws Exception {
        node.stop();
    }

    /** What a client may send. */
    enum Restore {
        TABLE {
            @Override
            ByteBuf request(long id) {
                Table table = Table.builder().name("restored").tablespace("herd").column("k", ColumnTypes.INTEGER).primaryKey("k").build();
                return PduCodec.RequestTableRestore.write(id, "herd", table.serialize(), 1, 1);
            }
        },
        ROWS {
            @Override
            ByteBuf request(long id) {
                return PduCodec.PushTableData.write(id, "herd", "t", List.of(new KeyValue(Bytes.from_int(2), Bytes.from_array(new byte[0]))));
            }
        },
        LOG {
            @Override
            ByteBuf request(long id) {
                LogEntry entry = LogEntryFactory.delete(node.manager("herd").getTableManager("t").getTable(), Bytes.from_int(1), null);
                return PduCodec.PushTxLogChunk.write(id, "herd", List.of(
                        new KeyValue(Bytes.from_array(new LogSequenceNumber(1, 1).serialize()), Bytes.from_array(entry.serialize()))));
            }
        },
        TRANSACTIONS {
            @Override
            ByteBuf request(long id) {
                return PduCodec.PushTransactionsBlock.write(id, "herd",
                        List.of(new Transaction(7, "herd", new CommitLogResult(new LogSequenceNumber(1, 1), false, true)).serialize()));
            }
        },
        TABLE_END {
            @Override
            ByteBuf request(long id) {
                return PduCodec.TableRestoreFinished.write(id, "herd", "t", List.of());
            }
        },
        END {
            @Override
            ByteBuf request(long id) {
                return PduCodec.RestoreFinished.write(id, "herd");
            }
        };

        abstract ByteBuf request(long id);
    }

    @ParameterizedTest
    @EnumSource
    void aClientPutsNothingIntoATablespaceThatItsLogHasNot(Restore part) throws Exception {
        try (HDBClient client = new HDBClient(new ClientConfiguration().set("client.network.connect.localvm", false)
                .set("client.username", "sa").set("client.password", "hdb"))) {
            client.setClientSideMetadataProvider(new StaticClientSideMetadataProvider(node.server()));
            try (HDBConnection connection = client.openConnection()) {
                assertEquals(List.of(Map.of("k", 1)),
                        connection.executeScan("herd", "SELECT k FROM t", true, List.of(), 0, 0, 10, true).consume());
                Channel channel = channel(connection);
                long id = channel.generateRequestId();
                try (Pdu answer = channel.sendMessageWithPduReply(id, part.request(id), LIMIT_MILLIS)) {
                    assertEquals(Pdu.TYPE_ERROR, answer.type);
                    assertTrue(PduCodec.ErrorResponse.readError(answer).contains("writes no log"), PduCodec.ErrorResponse.readError(answer));
                }
                assertEquals(List.of(Map.of("k", 1)),
                        connection.executeScan("herd", "SELECT k FROM t", true, List.of(), 0, 0, 10, true).consume(), "the connection serves");
            }
        }
        assertNull(node.manager("herd").getTableManager("restored"));
        assertEquals(1, ((TableManager) node.manager("herd").getTableManager("t")).getStats().getTablesize());
        assertEquals(List.of(), node.manager("herd").getTransactions());
    }

    @SuppressWarnings("unchecked")
    private static Channel channel(HDBConnection connection) throws ReflectiveOperationException {
        Field routes = HDBConnection.class.getDeclaredField("routes");
        routes.setAccessible(true);
        return ((Map<String, ClientSideConnectionPeer[]>) routes.get(connection)).values().stream().flatMap(Stream::of)
                .filter(peer -> peer != null && peer.getChannel() != null).findAny().orElseThrow().getChannel();
    }
}
