package io.herdkeeper.node.nemesis;

/** A fault at the point of this name. */
public record Strike(String point, Fault fault) {

    @Override
    public String toString() {
        return point + ": " + fault;
    }
}
