package io.herdkeeper.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.Arrays;
import org.junit.jupiter.api.Test;

class ContentTest {

    @Test
    void isRecognisedInItsOwnLogAndTellsItsSequence() {
        for (long sequence : new long[] {0, 1, 511, 1_000_000}) {
            byte[] content = Content.of(7, sequence);
            assertNull(Content.fault(content, 7));
            assertEquals(sequence, Content.sequence(content));
        }
        assertNotEquals(Content.of(7, 1).length, Content.of(7, 2).length);
    }

    @Test
    void isNotRecognisedInAnotherLog() {
        assertEquals("it belongs to log 7", Content.fault(Content.of(7, 1), 8));
    }

    @Test
    void isNotRecognisedWithOneBitChanged() {
        byte[] content = Content.of(7, 1);
        for (int i = 0; i < content.length; i++) {
            byte[] damaged = content.clone();
            damaged[i] ^= 1;
            assertEquals("the checksum is wrong", Content.fault(damaged, 7));
        }
    }

    @Test
    void isNotRecognisedWhenItWasCut() {
        assertEquals("20 bytes are too few", Content.fault(Arrays.copyOf(Content.of(7, 1), 20), 7));
    }
}
