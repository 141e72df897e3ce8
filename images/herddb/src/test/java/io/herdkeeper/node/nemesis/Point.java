package io.herdkeeper.node.nemesis;

/**
 * A moment in what a node does, which is there again in the next run.
 *
 * @param count which of the calls of this kind of that node since the story began, from 1 on, in whichever of its processes
 */
public record Point(String node, Call call, int count, Moment moment) {

    /** What it is named by in a case. */
    public String name() {
        return node + " " + call.kind() + " " + call.what() + " #" + count + " " + moment;
    }
}
