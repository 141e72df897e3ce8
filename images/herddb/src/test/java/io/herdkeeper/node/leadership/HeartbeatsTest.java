package io.herdkeeper.node.leadership;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.metadata.MetadataStorageManagerException;
import herddb.model.TableSpaceReplicaState;
import io.herdkeeper.node.testing.Await;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class HeartbeatsTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);

    private final List<String> written = Collections.synchronizedList(new ArrayList<>());

    @Test
    void whoSaysSomethingDoesNotWaitAndOfWhatWasSaidMeanwhileTheLastIsWritten() throws Exception {
        CountDownLatch writing = new CountDownLatch(1);
        CountDownLatch answer = new CountDownLatch(1);
        try (Heartbeats heartbeats = new Heartbeats(state -> {
            writing.countDown();
            await(answer);
            note(state);
        })) {
            heartbeats.say(state("app", 1));
            assertTrue(writing.await(LIMIT.toSeconds(), TimeUnit.SECONDS));
            heartbeats.say(state("app", 2));
            heartbeats.say(state("zoo", 3));
            heartbeats.say(state("app", 4));
            assertEquals(List.of(), written);
            answer.countDown();
            Await.until("all is written", LIMIT, () -> written.size() == 3);
        }
        assertEquals(List.of("app 1", "app 4", "zoo 3"), written);
    }

    @Test
    void whatCouldNotBeWrittenKeepsNothingThatIsSaidLaterFromBeingWritten() throws Exception {
        try (Heartbeats heartbeats = new Heartbeats(state -> {
            if (state.timestamp == 1) {
                throw new MetadataStorageManagerException("ZooKeeper is away");
            }
            if (state.timestamp == 2) {
                throw new IllegalStateException("a bug");
            }
            note(state);
        })) {
            heartbeats.say(state("app", 1));
            heartbeats.say(state("zoo", 2));
            heartbeats.say(state("herd", 3));
            Await.until("the next one is written", LIMIT, () -> written.size() == 1);
            heartbeats.say(state("app", 4));
        }
        assertEquals(List.of("herd 3", "app 4"), written);
    }

    @Test
    void whatWasSaidBeforeTheEndIsWrittenAndNothingAfterIt() {
        Heartbeats heartbeats = new Heartbeats(this::note);
        heartbeats.say(state("app", 1));
        heartbeats.close();
        heartbeats.say(state("app", 2));
        assertEquals(List.of("app 1"), written);
    }

    @Test
    void whatWaitsBehindAWriteThatHangsWhenTheEndComesIsNeverWritten() throws Exception {
        CountDownLatch writing = new CountDownLatch(1);
        CountDownLatch interrupted = new CountDownLatch(1);
        Heartbeats heartbeats = new Heartbeats(state -> {
            note(state);
            writing.countDown();
            try {
                new CountDownLatch(1).await();
            } catch (InterruptedException closing) {
                interrupted.countDown();
            }
        });
        heartbeats.say(state("app", 1));
        assertTrue(writing.await(LIMIT.toSeconds(), TimeUnit.SECONDS));
        heartbeats.say(state("zoo", 2));
        heartbeats.close();
        assertTrue(interrupted.await(LIMIT.toSeconds(), TimeUnit.SECONDS));
        assertTrue(heartbeats.awaitEnd(LIMIT));
        assertEquals(List.of("app 1"), written);
    }

    private void note(TableSpaceReplicaState state) {
        written.add(state.uuid + " " + state.timestamp);
    }

    private static TableSpaceReplicaState state(String tablespace, long timestamp) {
        return TableSpaceReplicaState.builder().uuid(tablespace).nodeId("n0").mode(TableSpaceReplicaState.MODE_FOLLOWER)
                .timestamp(timestamp).build();
    }

    private static void await(CountDownLatch answer) {
        try {
            assertTrue(answer.await(LIMIT.toSeconds(), TimeUnit.SECONDS));
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }
}
