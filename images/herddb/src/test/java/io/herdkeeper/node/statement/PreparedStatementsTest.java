package io.herdkeeper.node.statement;

import static org.junit.jupiter.api.Assertions.assertEquals;

import herddb.client.ClientConfiguration;
import herddb.client.ClientSideConnectionPeer;
import herddb.client.HDBClient;
import herddb.client.HDBConnection;
import herddb.network.Channel;
import herddb.proto.Pdu;
import herddb.proto.PduCodec;
import herddb.server.StaticClientSideMetadataProvider;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.lang.reflect.Field;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The numbers by which HerdDB's driver sends a statement that it has sent before. */
class PreparedStatementsTest {

    private static final int LIMIT_MILLIS = 60_000;

    @Test
    void aNumberOfAnEarlierProcessIsNoOtherStatement() throws Exception {
        String root = BookKeeperForTests.running().newRoot();
        Path folder = BookKeeperForTests.running().newFolder();
        RunningNode before = RunningNode.start(Node.configuration("n0", root, folder), null);
        before.server().waitForTableSpaceBoot("herd", LIMIT_MILLIS, true);
        Node.execute(before.server(), 0, "CREATE TABLE t (k int primary key)");
        Node.execute(before.server(), 0, "INSERT INTO t(k) VALUES(1)");
        long read = prepare(before, "SELECT k FROM t WHERE k=?");
        before.stop();

        RunningNode node = RunningNode.start(Node.configuration("n0", root, folder), null);
        node.server().waitForTableSpaceBoot("herd", LIMIT_MILLIS, true);
        prepare(node, "DELETE FROM t WHERE k=?");
        try (HDBClient client = client(node); HDBConnection connection = client.openConnection()) {
            Channel channel = channel(connection);
            long id = channel.generateRequestId();
            try (Pdu answer = channel.sendMessageWithPduReply(
                    id, PduCodec.ExecuteStatement.write(id, "herd", "", 0, false, read, List.of(1)), LIMIT_MILLIS)) {
                assertEquals(Pdu.TYPE_ERROR, answer.type, "the client sends the statement itself then");
            }
            assertEquals(List.of(Map.of("k", 1)),
                    connection.executeScan("herd", "SELECT k FROM t", true, List.of(), 0, 0, 10, true).consume());
        }
        node.stop();
    }

    private static long prepare(RunningNode node, String statement) throws Exception {
        try (HDBClient client = client(node); HDBConnection connection = client.openConnection()) {
            Channel channel = channel(connection);
            long id = channel.generateRequestId();
            try (Pdu answer = channel.sendMessageWithPduReply(id, PduCodec.PrepareStatement.write(id, "herd", statement), LIMIT_MILLIS)) {
                return PduCodec.PrepareStatementResult.readStatementId(answer);
            }
        }
    }

    private static HDBClient client(RunningNode node) {
        HDBClient client = new HDBClient(new ClientConfiguration().set("client.network.connect.localvm", false)
                .set("client.username", "sa").set("client.password", "hdb"));
        client.setClientSideMetadataProvider(new StaticClientSideMetadataProvider(node.server()));
        return client;
    }

    @SuppressWarnings("unchecked")
    private static Channel channel(HDBConnection connection) throws Exception {
        connection.executeScan("herd", "SELECT k FROM t", false, List.of(), 0, 0, 10, true).consume(); // opens it, and prepares nothing
        Field routes = HDBConnection.class.getDeclaredField("routes");
        routes.setAccessible(true);
        return ((Map<String, ClientSideConnectionPeer[]>) routes.get(connection)).values().stream().flatMap(Stream::of)
                .filter(peer -> peer != null && peer.getChannel() != null).findAny().orElseThrow().getChannel();
    }
}
