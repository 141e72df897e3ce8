package io.herdkeeper.zookeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;
import org.apache.zookeeper.server.DataTree;
import org.apache.zookeeper.server.ZKDatabase;
import org.apache.zookeeper.server.ZooKeeperServer;
import org.apache.zookeeper.server.auth.ServerAuthenticationProvider.MatchValues;
import org.apache.zookeeper.server.auth.ServerAuthenticationProvider.ServerObjs;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A real tree of znodes; the questions are those of ZooKeeper's PrepRequestProcessor. */
class StackAccessTest {

    private static final String OPERATOR = "CN=operator";
    private static final String NODES = "OU=0:log,CN=nodes.db";
    private static final ACL ALL_OF_OPERATOR = entry(Perms.ALL, OPERATOR);
    private static final List<ACL> ROOT = List.of(ALL_OF_OPERATOR, entry(Perms.ALL & ~Perms.ADMIN, "OU=0:log,CN=nodes.*"));

    private final StackAccess access = new StackAccess();
    private final DataTree tree = new DataTree();
    private ServerObjs server;

    @BeforeEach
    void aRoot() throws Exception {
        tree.createNode("/root", new byte[0], ROOT, 0, 0, 1, 1);
        server = new ServerObjs(serverOf(tree), null);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "CN=operator|CN=operator|true",
        "CN=operator2|CN=operator|false",
        "OU=0:log,CN=nodes.db|OU=0:log,CN=nodes.*|true",
        "OU=0:other,CN=nodes.db|OU=0:log,CN=nodes.*|false",
        "OU=0:log,CN=nodes.|OU=0:log,CN=nodes.*|false",
        "OU=0:log,CN=readers.log|OU=0:log,CN=nodes.*|false",
        "OU=0:log,CN=nodes.db|OU=0:*,CN=nodes.db|true",
        "OU=0:log,CN=nodes.other|OU=0:*,CN=nodes.db|false",
        "OU=0:log,CN=x,CN=nodes.db|OU=0:*,CN=nodes.db|false",
    })
    void aSubjectIsMeantWholeOrByOneName(String subject, String meant, boolean fits) {
        assertEquals(fits, StackAccess.fits(subject, meant));
    }

    @Test
    void whatAClientCreatesGetsItsParentsAccess() throws Exception {
        for (List<ACL> asked : List.of(Ids.OPEN_ACL_UNSAFE, List.of(entry(Perms.ALL, NODES)))) {
            List<ACL> chosen = new ArrayList<>(asked);
            assertTrue(asks(NODES, "OU=0:log,CN=nodes.*", Perms.CREATE, "/root/child", chosen));
            assertEquals(ROOT, chosen);
        }
    }

    @Test
    void aParentThatIsNotThereYetHasTheAccessOfWhatIsAboveIt() throws Exception {
        List<ACL> chosen = new ArrayList<>(Ids.OPEN_ACL_UNSAFE);
        assertTrue(asks(NODES, "OU=0:log,CN=nodes.*", Perms.CREATE, "/root/on/the/way", chosen));
        assertEquals(ROOT, chosen);
    }

    @Test
    void whoMayChangeTheParentsAccessChoosesButLeavesNothingOpen() throws Exception {
        List<ACL> chosen = new ArrayList<>(List.of(ALL_OF_OPERATOR));
        assertTrue(asks(OPERATOR, OPERATOR, Perms.CREATE, "/root/child", chosen));
        assertEquals(List.of(ALL_OF_OPERATOR), chosen);
        List<ACL> open = new ArrayList<>(Ids.OPEN_ACL_UNSAFE);
        assertTrue(asks(OPERATOR, OPERATOR, Perms.CREATE, "/root/child", open));
        assertEquals(ROOT, open);
    }

    @Test
    void whoMayNotWriteAZnodeMayNotDeleteIt() throws Exception {
        tree.createNode("/root/fixed", new byte[0], List.of(ALL_OF_OPERATOR, entry(Perms.READ, NODES)), 0, 1, 2, 2);
        tree.createNode("/root/own", new byte[0], ROOT, 0, 2, 3, 3);
        assertFalse(asks(NODES, "OU=0:log,CN=nodes.*", Perms.DELETE, "/root/fixed", null));
        assertTrue(asks(NODES, "OU=0:log,CN=nodes.*", Perms.DELETE, "/root/own", null));
        assertTrue(asks(NODES, "OU=0:log,CN=nodes.*", Perms.DELETE, "/root/on-the-way", null));
        assertTrue(asks(OPERATOR, OPERATOR, Perms.DELETE, "/root/fixed", null));
    }

    @Test
    void nobodyIsSomebodyBySayingSo() {
        assertEquals(KeeperException.Code.AUTHFAILED, access.handleAuthentication(server, OPERATOR.getBytes()));
        assertFalse(access.isAuthenticated());
    }

    private boolean asks(String subject, String meant, int permission, String path, List<ACL> chosen) {
        return access.matches(server, new MatchValues(path, subject, meant, permission, chosen));
    }

    private static ACL entry(int permissions, String subject) {
        return new ACL(permissions, new Id(StackAccess.SCHEME, subject));
    }

    private static ZooKeeperServer serverOf(DataTree tree) {
        return new ZooKeeperServer() {
            @Override
            public ZKDatabase getZKDatabase() {
                return new ZKDatabase(null) {
                    @Override
                    public List<ACL> getACL(String path, Stat stat) throws KeeperException.NoNodeException {
                        return tree.getACL(path, stat);
                    }
                };
            }
        };
    }
}
