package io.herdkeeper.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class ReceivedTest {

    private final Written written = new Written(() -> 0);
    private final Received received = new Received();

    @Test
    void allThatWasAcknowledgedHasCome() {
        acknowledge(0, 1, 2);
        receive(0, 1, 2);
        assertTrue(received.reaches(written));
        assertNull(received.violation(written));
        assertEquals(3, received.count());
    }

    @Test
    void whatWasNotAnsweredMayHaveComeOrNot() {
        acknowledge(0, 3);
        receive(0, 2, 3, 4);
        assertNull(received.violation(written));
    }

    @Test
    void anAcknowledgedOneThatWasLeftOutIsMissing() {
        acknowledge(0, 1, 2);
        receive(0, 2);
        assertEquals("1 of 3 acknowledged entries are missing, the first is sequence 1", received.violation(written));
    }

    @Test
    void theLastOnesAreMissingToo() {
        acknowledge(0, 1, 2);
        receive(0);
        assertFalse(received.reaches(written));
        assertEquals("2 of 3 acknowledged entries are missing, the first is sequence 1", received.violation(written));
    }

    @Test
    void whatComesTwiceOrLateIsOutOfOrder() {
        acknowledge(0, 1);
        receive(0, 1, 1);
        assertEquals("entry 1: sequence 1 comes after 1", received.violation(written));
    }

    @Test
    void theFirstWrongContentIsTold() {
        received.next(Content.of(8, 0), 7, "entry 0");
        received.next(Content.of(9, 0), 7, "entry 1");
        assertTrue(received.reaches(written));
        assertEquals("entry 0: it belongs to log 8", received.violation(written));
    }

    private void acknowledge(long... sequences) {
        for (long each : sequences) {
            written.acknowledged(each);
        }
    }

    private void receive(long... sequences) {
        for (long each : sequences) {
            received.next(Content.of(7, each), 7, "entry " + each);
        }
    }
}
