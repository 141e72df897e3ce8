package io.herdkeeper.bookie;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.bookkeeper.tls.TLSContextFactory;
import org.junit.jupiter.api.Test;

class StandInProviderTest {

    @Test
    void theTlsOfBookiesLoadsAProviderThatProvidesNothing() {
        assertEquals("BCFIPS", TLSContextFactory.BC_PROVIDER.getName());
        assertTrue(TLSContextFactory.BC_PROVIDER.getServices().isEmpty());
    }
}
