package io.herdkeeper.zookeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
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
import org.apache.zookeeper.server.auth.ProviderRegistry;
import org.apache.zookeeper.server.auth.ServerAuthenticationProvider.MatchValues;
import org.apache.zookeeper.server.auth.ServerAuthenticationProvider.ServerObjs;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.slf4j.LoggerFactory;

/** A real tree of znodes; the questions are those of ZooKeeper's PrepRequestProcessor. */
class StackAccessTest {

    private static final String PROVIDER = "zookeeper.authProvider.stack";
    private static final String OPERATOR = "CN=operator";
    private static final String NODES = "OU=0:log,CN=nodes.db";
    private static final ACL ALL_OF_OPERATOR = entry(Perms.ALL, OPERATOR);
    private static final List<ACL> ROOT = List.of(ALL_OF_OPERATOR, entry(Perms.ALL & ~Perms.ADMIN, "OU=0:log,CN=nodes.*"));

    private final StackAccess access = new StackAccess();
    private final DataTree tree = new DataTree();
    private final ListAppender<ILoggingEvent> lines = new ListAppender<>();
    private ServerObjs server;

    @BeforeEach
    void zooKeeperKnowsTheSchemeAndLinesAreKept() {
        System.setProperty(PROVIDER, StackAccess.class.getName());
        ProviderRegistry.reset();
        lines.start();
        ((Logger) LoggerFactory.getLogger(Refusals.class)).addAppender(lines);
    }

    @AfterEach
    void zooKeeperForgetsTheScheme() {
        System.clearProperty(PROVIDER);
        ProviderRegistry.reset();
        ((Logger) LoggerFactory.getLogger(Refusals.class)).detachAppender(lines);
    }

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

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "1|to read /root/fixed",
        "2|to write /root/fixed",
        "4|to create /root/fixed/child",
        "8|to delete /root/fixed",
        "16|to change the access of /root/fixed",
    })
    void whoIsRefusedIsToldOfOnce(int permission, String told) throws Exception {
        fixed(List.of(ALL_OF_OPERATOR, entry(Perms.READ, "OU=0:log,CN=readers.*")));
        String path = told.substring(told.indexOf('/'));
        assertFalse(isLetIn(NODES, permission, path, permission == Perms.ADMIN ? List.of(ALL_OF_OPERATOR) : null));
        assertEquals(List.of("refused " + NODES + " (access): " + told + "; 0 more since the last such line"), told());
    }

    @Test
    void aRefusedDeletionIsToldThoughTheParentAllowsIt() throws Exception {
        fixed(List.of(ALL_OF_OPERATOR, entry(Perms.READ, NODES)));
        assertFalse(isLetIn(NODES, Perms.DELETE, "/root/fixed", null));
        assertEquals(1, told().size());
    }

    @Test
    void whoCreatesTheRootOfAllIsRefusedLikeOthers() throws Exception {
        tree.setACL("/", List.of(ALL_OF_OPERATOR), -1);
        assertFalse(isLetIn(NODES, Perms.CREATE, "/", new ArrayList<>(Ids.OPEN_ACL_UNSAFE)));
        assertEquals(1, told().size());
    }

    @Test
    void whatIsAllowedByALaterEntryOrToEverybodyIsNotTold() throws Exception {
        fixed(List.of(ALL_OF_OPERATOR, new ACL(Perms.READ, Ids.ANYONE_ID_UNSAFE)));
        assertTrue(isLetIn(NODES, Perms.READ, "/root/fixed", null));
        assertTrue(isLetIn(NODES, Perms.READ, "/root", null));
        assertTrue(isLetIn(NODES, Perms.CREATE, "/root/child", new ArrayList<>(Ids.OPEN_ACL_UNSAFE)));
        assertTrue(isLetIn(OPERATOR, Perms.DELETE, "/root/fixed", null));
        assertEquals(List.of(), told());
    }

    @Test
    void whoReadsAnAccessListIsNotToldOf() throws Exception {
        assertFalse(isLetIn(NODES, Perms.ADMIN, "/root", null));
        assertEquals(List.of(), told());
    }

    @Test
    void tenRefusalsAMinuteAreLogged() {
        Refusals refusals = new Refusals();
        for (int number = 0; number < 30; number++) {
            refusals.tell(NODES, "to read /" + "long".repeat(1000));
        }
        assertEquals(10, told().size());
        assertTrue(told().get(9).length() < 400);
    }

    private void fixed(List<ACL> list) throws Exception {
        tree.createNode("/root/fixed", new byte[0], list, 0, 1, 2, 2);
    }

    /** As ZooKeeper itself decides it, with the list that it finds. */
    private boolean isLetIn(String subject, int permission, String path, List<ACL> chosen) throws Exception {
        boolean ofParent = permission == Perms.CREATE || permission == Perms.DELETE;
        List<ACL> list = tree.getACL(ofParent ? path.substring(0, path.lastIndexOf('/')) : path, null);
        try {
            server.getZks().checkACL(null, list, permission, List.of(new Id(StackAccess.SCHEME, subject)), path, chosen);
            return true;
        } catch (KeeperException.NoAuthException refused) {
            return false;
        }
    }

    private List<String> told() {
        return lines.list.stream().map(ILoggingEvent::getFormattedMessage).toList();
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
