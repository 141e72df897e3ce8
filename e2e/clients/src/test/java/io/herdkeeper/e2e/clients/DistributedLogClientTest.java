package io.herdkeeper.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class DistributedLogClientTest {

    @Test
    void theNamespacesUriSeparatesHostsBySemicolons() {
        assertEquals("distributedlog://a:2181;b:2181/e2e/streams",
                DistributedLogClient.namespaceUri("a:2181,b:2181", "/e2e/streams").toString());
    }
}
