package io.herdkeeper.node.nemesis;

import java.util.Arrays;

/** What two nodes do while the nemesis is about. Each step goes on after its time where a fault is in its way. */
enum Story {

    FIRST_BOOT("first boot") {
        @Override
        void setUp(Run run) throws Exception {
            run.setUpRecord();
        }

        @Override
        void tell(Run run) throws Exception {
            run.run("n0");
            run.run("n1");
            run.await(() -> run.node("n0").leads());
            run.await(run.clients().createTable(run.node("n0")));
            run.await(run.clients().insert(run.node("n0")));
            run.node("n0").pushLastEntry();
            run.await(() -> Rows.digest(run.node("n0")).equals(Rows.digest(run.node("n1"))));
        }
    },

    LEADER_CHANGE("leader change") {
        @Override
        void tell(Run run) throws Exception {
            run.await(run.clients().insert(run.node("n0")));
            run.name("n1");
            run.await(() -> run.node("n1").leads());
            run.await(run.clients().insert(run.node("n1")), run.clients().insert(run.node("n0")));
            run.node("n1").pushLastEntry();
            run.await(() -> Rows.digest(run.node("n0")).equals(Rows.digest(run.node("n1"))));
        }
    },

    FOLLOWER_AT_A_ROLL("follower at a roll") {
        @Override
        void tell(Run run) throws Exception {
            writeAndRoll(run);
            run.step(() -> run.node("n1").checkpointAsAsked());
            run.step(() -> run.node("n1").stop());
            writeAndRoll(run);
            run.node("n1").life().kill();
            run.run("n1");
            run.await(() -> run.node("n1").follows() && Rows.digest(run.node("n0")).equals(Rows.digest(run.node("n1"))));
        }
    },

    /** The follower's disk lags behind the leader's first, and keeps what that one does not need. */
    DROPPED_LEDGERS("dropped ledgers") {
        @Override
        void tell(Run run) throws Exception {
            writeAndRoll(run);
            run.step(() -> run.node("n0").checkpointAsTimed());
            run.step(() -> run.node("n1").release());
            run.step(() -> run.node("n0").release());
            run.await(() -> Rows.digest(run.node("n0")).equals(Rows.digest(run.node("n1"))));
            run.step(() -> run.node("n1").checkpointAsAsked());
            run.step(() -> run.node("n1").release());
            run.step(() -> run.node("n0").release());
            run.await(run.clients().insert(run.node("n0")));
            run.node("n0").pushLastEntry();
            run.await(() -> Rows.digest(run.node("n0")).equals(Rows.digest(run.node("n1"))));
        }
    };

    private final String title;

    Story(String title) {
        this.title = title;
    }

    /** What there is when the story begins: a leader n0 and a follower n1 that have the same rows. */
    void setUp(Run run) throws Exception {
        run.setUpNodes();
    }

    abstract void tell(Run run) throws Exception;

    void writeAndRoll(Run run) throws Exception {
        run.await(run.clients().insert(run.node("n0")));
        run.step(() -> run.node("n0").log().closeLedger(-1));
        run.await(run.clients().insert(run.node("n0")));
        run.node("n0").pushLastEntry();
    }

    static Story named(String title) {
        return Arrays.stream(values()).filter(story -> story.title.equals(title)).findFirst().orElseThrow(() ->
                new IllegalArgumentException("CASE: no story '" + title + "', but " + Arrays.toString(values())));
    }

    @Override
    public String toString() {
        return title;
    }
}
