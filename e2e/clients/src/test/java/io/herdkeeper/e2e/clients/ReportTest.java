package io.herdkeeper.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.BufferedReader;
import java.io.StringReader;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

class ReportTest {

    private double now;
    private final Written written = new Written(() -> now);

    @Test
    void aGapBeginsWithTheLastSuccessBeforeItsMarkAndEndsAfterIt() {
        answerAt(1);
        now = 1.5;
        written.mark("a disk lost");
        answerAt(4);
        answerAt(5);
        written.attempt();
        written.mark("another \"one\"");
        now = 7;
        assertEquals("[{\"fault\": \"a disk lost\", \"seconds\": 3.000, \"unknown_rows\": 1}, "
                + "{\"fault\": \"another \\\"one\\\"\", \"seconds\": 2.000, \"unknown_rows\": 0}]", written.gaps());
    }

    @Test
    void isOneLineWithWhatWasReadTwice() {
        answerAt(1);
        Received tailed = new Received();
        Received readBack = new Received();
        tailed.next(Content.of(1, 0), 1, "entry 0");
        readBack.next(Content.of(1, 0), 1, "entry 0");
        assertEquals("{\"report\": {\"acknowledged\": 1, \"tailed\": 1, \"read\": 1, \"gaps\": [], \"violation\": null}}",
                Report.of(written, tailed, readBack).toLine());
        assertEquals("the reader afterwards: 1 of 1 acknowledged entries are missing, the first is sequence 0",
                Report.of(written, tailed, new Received()).violation());
    }

    @Test
    void ordersMarkFaultsUntilOneSaysStop() {
        CountDownLatch stop = new CountDownLatch(1);
        Orders.follow(new BufferedReader(new StringReader("mark a disk lost\nstop\nmark too late\n")), written, stop);
        assertEquals(0, stop.getCount());
        assertEquals("[{\"fault\": \"a disk lost\", \"seconds\": 0.000, \"unknown_rows\": 0}]", written.gaps());
    }

    @Test
    void anUnknownOrderIsRefusedAndEndsTheWriter() {
        CountDownLatch stop = new CountDownLatch(1);
        BufferedReader input = new BufferedReader(new StringReader("halt\n"));
        assertThrows(IllegalArgumentException.class, () -> Orders.follow(input, written, stop));
        assertEquals(0, stop.getCount());
    }

    private void answerAt(double at) {
        now = at;
        written.acknowledged(written.attempt());
    }
}
