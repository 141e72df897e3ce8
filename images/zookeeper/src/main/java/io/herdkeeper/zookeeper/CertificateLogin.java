package io.herdkeeper.zookeeper;

import java.util.List;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.common.X509Exception;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.server.ServerCnxn;
import org.apache.zookeeper.server.auth.X509AuthenticationProvider;

/** ZooKeeper's login by certificate, which also makes the subject known to {@link StackAccess}. */
public final class CertificateLogin extends X509AuthenticationProvider {

    /** Reads the stores that ZooKeeper's own provider reads. */
    public CertificateLogin() throws X509Exception {
        super();
    }

    @Override
    public KeeperException.Code handleAuthentication(ServerCnxn connection, byte[] data) {
        KeeperException.Code code = super.handleAuthentication(connection, data);
        if (code == KeeperException.Code.OK) {
            for (Id id : List.copyOf(connection.getAuthInfo())) {
                if (id.getScheme().equals(getScheme())) {
                    connection.addAuthInfo(new Id(StackAccess.SCHEME, id.getId()));
                }
            }
        }
        return code;
    }
}
