package io.herdkeeper.zookeeper;

import java.util.List;
import java.util.Map;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.server.ZKDatabase;
import org.apache.zookeeper.server.auth.ServerAuthenticationProvider;

/**
 * The scheme {@value #SCHEME} of ACLs: its ids are subjects of certificates, in which one {@code *} stands for any name.
 *
 * <p>BookKeeper and HerdDB create open znodes. So a znode gets the ACL of its parent, whatever the client asks for. Only a client that may
 * change the parent's ACL can choose another one. A client that deletes a znode needs write access to it. ZooKeeper itself checks only the
 * parent, which also contains other clients' znodes.
 *
 * <p>ZooKeeper (3.9.5, {@code PrepRequestProcessor}) passes this class the list that it then stores.
 */
public final class StackAccess extends ServerAuthenticationProvider {

    static final String SCHEME = "stack";
    private static final char ANY = '*';
    private static final Map<Integer, String> NAMED = Map.of(
            ZooDefs.Perms.READ, "read",
            ZooDefs.Perms.WRITE, "write",
            ZooDefs.Perms.CREATE, "create",
            ZooDefs.Perms.DELETE, "delete",
            ZooDefs.Perms.ADMIN, "change the access of");

    private final Refusals refusals = new Refusals();

    @Override
    public String getScheme() {
        return SCHEME;
    }

    /** Nobody is somebody by saying so: {@link CertificateLogin} adds the ids. */
    @Override
    public KeeperException.Code handleAuthentication(ServerObjs server, byte[] data) {
        return KeeperException.Code.AUTHFAILED;
    }

    @Override
    public boolean matches(ServerObjs server, MatchValues asked) {
        ZKDatabase tree = server.getZks().getZKDatabase();
        boolean may = may(tree, asked);
        if (!may && isRefused(tree, asked)) {
            refusals.tell(asked.getId(), "to " + NAMED.getOrDefault(asked.getPerm(), "use") + " " + asked.getPath());
        }
        return may;
    }

    private static boolean may(ZKDatabase tree, MatchValues asked) {
        if (!fits(asked.getId(), asked.getAclExpr())) {
            return false;
        }
        switch (asked.getPerm()) {
            case ZooDefs.Perms.CREATE -> inherit(tree, asked);
            case ZooDefs.Perms.DELETE -> {
                List<ACL> own = accessTo(tree, asked.getPath());
                return own == null || allows(own, ZooDefs.Perms.WRITE, asked.getId());
            }
            default -> { }
        }
        return true;
    }

    @Override
    public boolean isAuthenticated() {
        return false;
    }

    @Override
    public boolean isValid(String id) {
        return !id.isEmpty() && id.indexOf(ANY) == id.lastIndexOf(ANY);
    }

    /** Whether a subject is meant by an ACL's id. No part of a subject is skipped: a name has no comma. */
    static boolean fits(String subject, String meant) {
        int any = meant.indexOf(ANY);
        if (any < 0) {
            return subject.equals(meant);
        }
        String before = meant.substring(0, any);
        String after = meant.substring(any + 1);
        return subject.length() > before.length() + after.length()
                && subject.startsWith(before)
                && subject.endsWith(after)
                && subject.substring(before.length(), subject.length() - after.length()).indexOf(',') < 0;
    }

    /**
     * Whether no entry lets the client in. True once for each refusal: ZooKeeper ({@code ZooKeeperServer.checkACL}) asks for one entry after
     * the other, so the last one is waited for. Not for the access that the answer to {@code getACL} depends on, which refuses nobody.
     */
    private static boolean isRefused(ZKDatabase tree, MatchValues asked) {
        String path = asked.getPath();
        int permission = asked.getPerm();
        if (path == null || permission == ZooDefs.Perms.ADMIN && asked.getSetAcls() == null) {
            return false;
        }
        List<ACL> own = accessTo(tree, path);
        boolean deletes = permission == ZooDefs.Perms.DELETE;
        boolean ofParent = own == null || deletes || permission == ZooDefs.Perms.CREATE;
        List<ACL> access = ofParent && !path.equals("/") ? accessAbove(tree, path) : own;
        Id last = null;
        for (ACL entry : access) {
            if ((entry.getPerms() & permission) != 0 && entry.getId().getScheme().equals(SCHEME)) {
                last = entry.getId();
            }
        }
        return last != null
                && last.getId().equals(asked.getAclExpr())
                && !(allows(access, permission, asked.getId())
                        && (!deletes || own == null || allows(own, ZooDefs.Perms.WRITE, asked.getId())));
    }

    private static void inherit(ZKDatabase tree, MatchValues asked) {
        List<ACL> chosen = asked.getSetAcls();
        List<ACL> parents = accessAbove(tree, asked.getPath());
        if (chosen.equals(ZooDefs.Ids.OPEN_ACL_UNSAFE) || !allows(parents, ZooDefs.Perms.ADMIN, asked.getId())) {
            chosen.clear();
            chosen.addAll(parents);
        }
    }

    private static boolean allows(List<ACL> access, int permission, String subject) {
        return access.stream().anyMatch(entry -> (entry.getPerms() & permission) != 0 && names(entry.getId(), subject));
    }

    private static boolean names(Id meant, String subject) {
        return meant.equals(ZooDefs.Ids.ANYONE_ID_UNSAFE) || meant.getScheme().equals(SCHEME) && fits(subject, meant.getId());
    }

    /** The ACL of the next znode above that is there: a parent whose creation is not through yet gets the same. */
    private static List<ACL> accessAbove(ZKDatabase tree, String path) {
        for (String above = path; !above.equals("/");) {
            int slash = above.lastIndexOf('/');
            above = slash == 0 ? "/" : above.substring(0, slash);
            List<ACL> access = accessTo(tree, above);
            if (access != null) {
                return access;
            }
        }
        throw new IllegalStateException("ZooKeeper has no root");
    }

    /** Null without the znode. */
    private static List<ACL> accessTo(ZKDatabase tree, String path) {
        try {
            return tree.getACL(path, null);
        } catch (KeeperException.NoNodeException missing) {
            return null;
        }
    }
}
